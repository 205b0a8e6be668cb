// Reads an SDF file by libsdformat and prints, line by line, what it understood: links with mass, centre and inertia in
// the model's frame; joints with their frame and axes there, as its own frame graph resolves them.
#include <sdf/sdf.hh>

#if __has_include(<gz/math/Pose3.hh>)
#include <gz/math/Pose3.hh>
namespace maths = gz::math;
#else  // the library was called so up to version 12
#include <ignition/math/Pose3.hh>
namespace maths = ignition::math;
#endif

#include <cstdio>
#include <iostream>

static void print(const char *word, const std::string &name, std::initializer_list<double> values) {
    std::printf("%s %s", word, name.c_str());
    for (double value : values) std::printf(" %.17g", value);
    std::printf("\n");
}

static int report(const sdf::Errors &errors, const char *what) {
    for (const auto &error : errors) std::cerr << what << ": " << error.Message() << "\n";
    return errors.empty() ? 0 : 1;
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    sdf::Root root;
    if (report(root.Load(arguments[1]), "load")) return 1;
    const sdf::Model *model = root.Model();
    if (const sdf::World *world = root.WorldByIndex(0)) {
        model = world->ModelByIndex(0);
        const auto g = world->Gravity();
        print("gravity", "world", {g.X(), g.Y(), g.Z()});
    }
    for (uint64_t k = 0; k < model->LinkCount(); ++k) {
        const sdf::Link *link = model->LinkByIndex(k);
        maths::Pose3d pose;
        if (report(link->SemanticPose().Resolve(pose, "__model__"), "link")) return 1;
        const auto at = pose.Pos(), centre = pose.Pos() + pose.Rot().RotateVector(link->Inertial().Pose().Pos());
        const auto I = pose.Rot() * maths::Quaterniond(link->Inertial().Pose().Rot());
        const maths::Matrix3d R(I), moment = R * link->Inertial().MassMatrix().Moi() * R.Transposed();
        print("link", link->Name(),
              {link->Inertial().MassMatrix().Mass(), at.X(), at.Y(), at.Z(), centre.X(), centre.Y(), centre.Z(),
               moment(0, 0), moment(1, 1), moment(2, 2), moment(0, 1), moment(0, 2), moment(1, 2)});
    }
    for (uint64_t k = 0; k < model->JointCount(); ++k) {
        const sdf::Joint *joint = model->JointByIndex(k);
        maths::Pose3d pose;
        if (report(joint->SemanticPose().Resolve(pose, "__model__"), "joint")) return 1;
        std::string parent, child;
        if (report(joint->ResolveParentLink(parent), "parent") || report(joint->ResolveChildLink(child), "child")) return 1;
        std::printf("joint %s %d %s %s", joint->Name().c_str(), static_cast<int>(joint->Type()), parent.c_str(), child.c_str());
        std::printf(" %.17g %.17g %.17g", pose.Pos().X(), pose.Pos().Y(), pose.Pos().Z());
        for (unsigned int axis = 0; axis < 2; ++axis)
            if (joint->Axis(axis)) {
                maths::Vector3d xyz;
                if (report(joint->Axis(axis)->ResolveXyz(xyz, "__model__"), "axis")) return 1;
                std::printf(" %.17g %.17g %.17g", xyz.X(), xyz.Y(), xyz.Z());
            }
        std::printf("\n");
    }
    return 0;
}
