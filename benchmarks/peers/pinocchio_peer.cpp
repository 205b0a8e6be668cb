// Pinocchio at its best on one machine with closed loops: reads the machine and its states as text, times, prints JSON.
//
// Usage: pinocchio_peer PROBLEM SECONDS   (`problem_text` in pinocchio_cpp.py writes PROBLEM)
//
// Headers only: the library's own instantiations are not linked, so that -march=native holds for all of it.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>

#include <Eigen/LU>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace pin = pinocchio;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using Vector6d = Eigen::Matrix<double, 6, 1>;

// One constraint row: a force along e at the second origin, or a moment along f x e, on two joints.
struct Row
{
  bool is_point;
  Vector3d e, f;  // in the first and the second joint's axes
};

struct Constraint
{
  pin::JointIndex first, second;
  pin::SE3 first_at, second_at;
  std::vector<Row> rows;
  std::vector<std::pair<Index, double>> columns;  // velocities between the two joints, with the side they are on
};

struct Spring
{
  Index v, q;
  double stiffness, preload;
};

struct Problem
{
  pin::Model model;
  VectorXd armature;
  std::vector<Spring> springs;
  std::vector<Constraint> constraints;
  std::vector<Index> slot;    // where each velocity stands: the passive ones first, then the driven ones
  std::vector<Index> driven;  // velocities of the driven coordinates
  Index passive = 0;
  MatrixXd transmission, transmission_inverse;  // S of the driven coordinates (n_u, n_u), and its inverse
  bool has_forward = false;
  double mu = 0.0;
  std::vector<VectorXd> q, v, a;
};

class Reader
{
public:
  explicit Reader(const std::string & path) : stream_(path) {}
  template<typename T>
  T read()
  {
    T value;
    if (!(stream_ >> value))
      throw std::runtime_error("the problem file is not complete");
    return value;
  }
  double number() { return read<double>(); }
  Index count() { return read<Index>(); }
  VectorXd vector(Index n)
  {
    VectorXd x(n);
    for (Index i = 0; i < n; ++i)
      x[i] = number();
    return x;
  }
  MatrixXd matrix(Index rows, Index columns)
  {
    MatrixXd x(rows, columns);
    for (Index i = 0; i < rows; ++i)
      x.row(i) = vector(columns);
    return x;
  }
  pin::SE3 pose()
  {
    const MatrixXd R = matrix(3, 3);
    return pin::SE3(R, vector(3));
  }

private:
  std::ifstream stream_;
};

static pin::JointModel joint(const std::string & kind, const Vector3d & one, const Vector3d & two)
{
  if (kind == "free") return pin::JointModelFreeFlyer();
  if (kind == "planar") return pin::JointModelPlanar();
  if (kind == "translation") return pin::JointModelTranslation();
  if (kind == "ball") return pin::JointModelSpherical();
  if (kind == "universal") return pin::JointModelUniversal(one, two);
  const bool is_hinge = kind == "hinge";
  if (one == Vector3d::UnitX()) return is_hinge ? pin::JointModel(pin::JointModelRX()) : pin::JointModelPX();
  if (one == Vector3d::UnitY()) return is_hinge ? pin::JointModel(pin::JointModelRY()) : pin::JointModelPY();
  if (one == Vector3d::UnitZ()) return is_hinge ? pin::JointModel(pin::JointModelRZ()) : pin::JointModelPZ();
  if (is_hinge) return pin::JointModelRevoluteUnaligned(one);
  return pin::JointModelPrismaticUnaligned(one);
}

static Problem read_problem(const std::string & path)
{
  Reader in(path);
  Problem p;
  p.model.gravity.linear(Vector3d(in.vector(3)));
  const Index joints = in.count();
  for (Index i = 0; i < joints; ++i)
  {
    const auto parent = pin::JointIndex(in.count());
    const auto kind = in.read<std::string>();
    const Vector3d one = in.vector(3), two = in.vector(3);
    const pin::SE3 at = in.pose();
    const auto number = p.model.addJoint(parent, joint(kind, one, two), at, "joint " + std::to_string(i));
    const double mass = in.number();
    const Vector3d center = in.vector(3);
    const Eigen::Matrix3d about_center = in.matrix(3, 3);
    p.model.appendBodyToJoint(number, pin::Inertia(mass, center, about_center), pin::SE3::Identity());
  }
  p.armature = in.vector(p.model.nv);
  p.model.armature = p.armature;
  p.springs.resize(std::size_t(in.count()));
  for (auto & spring : p.springs)
  {
    spring.v = in.count();
    spring.q = in.count();
    spring.stiffness = in.number();
    spring.preload = in.number();
  }
  p.constraints.resize(std::size_t(in.count()));
  for (auto & c : p.constraints)
  {
    c.first = pin::JointIndex(in.count());
    c.first_at = in.pose();
    c.second = pin::JointIndex(in.count());
    c.second_at = in.pose();
    c.rows.resize(std::size_t(in.count()));
    for (auto & row : c.rows)
    {
      row.is_point = in.count() != 0;
      row.e = c.first_at.rotation() * Vector3d(in.vector(3));
      row.f = c.second_at.rotation() * Vector3d(in.vector(3));
    }
    VectorXd side = VectorXd::Zero(p.model.nv);
    for (const auto & [end, sign] : {std::pair{c.second, 1.0}, std::pair{c.first, -1.0}})
      for (const auto j : p.model.supports[end])
        if (j != 0)
          side.segment(p.model.joints[j].idx_v(), p.model.joints[j].nv()).array() += sign;
    for (Index i = 0; i < p.model.nv; ++i)
      if (side[i] != 0.0)
        c.columns.emplace_back(i, side[i]);
  }
  const Index actuators = in.count();
  for (Index i = 0; i < actuators; ++i)
    p.driven.push_back(in.count());
  p.transmission = in.matrix(actuators, actuators);
  p.transmission_inverse = p.transmission.inverse();
  p.passive = p.model.nv - actuators;
  p.slot.assign(std::size_t(p.model.nv), -1);
  for (Index i = 0; i < actuators; ++i)
    p.slot[std::size_t(p.driven[std::size_t(i)])] = p.passive + i;
  Index next = 0;
  for (auto & slot : p.slot)
    if (slot < 0)
      slot = next++;
  p.has_forward = in.count() != 0;
  p.mu = in.number();
  const Index states = in.count();
  for (Index i = 0; i < states; ++i)
  {
    p.q.push_back(in.vector(p.model.nq));
    p.v.push_back(in.vector(p.model.nv));
    p.a.push_back(in.vector(p.model.nv));
  }
  return p;
}

// What a user of Pinocchio would write for inverse dynamics with loops, all memory taken beforehand.
class InverseDynamics
{
public:
  explicit InverseDynamics(const Problem & p)
  : p_(p), data_(p.model), all_(MatrixXd::Zero(p.model.nv, p.passive)), tau_(p.model.nv), lu_(p.passive)
  {
  }

  const VectorXd & tree(std::size_t i) { return pin::rnea(p_.model, data_, p_.q[i], p_.v[i], p_.a[i]); }

  // S u + K^T lambda = tree forces: the passive coordinates give the multipliers, then the driven ones the forces.
  void operator()(std::size_t i, Eigen::Ref<VectorXd> u)
  {
    const VectorXd & tau = tree(i);
    for (Index k = 0; k < p_.model.nv; ++k)
      tau_[p_.slot[std::size_t(k)]] = tau[k];
    for (const Spring & s : p_.springs)
      tau_[p_.slot[std::size_t(s.v)]] += s.stiffness * p_.q[i][s.q] - s.preload;
    pin::updateGlobalPlacements(p_.model, data_);
    pin::computeJointJacobians(p_.model, data_);
    fill();
    if (p_.passive > 0)
    {
      lu_.compute(all_.topRows(p_.passive));
      multipliers_.noalias() = lu_.solve(tau_.head(p_.passive));
      tau_.tail(u.size()).noalias() -= all_.bottomRows(u.size()) * multipliers_;
    }
    u.noalias() = p_.transmission_inverse * tau_.tail(u.size());
  }

private:
  // K^T, passive coordinates first: each row of K is a wrench on the second joint against the first.
  void fill()
  {
    Index r = 0;
    for (const Constraint & c : p_.constraints)
    {
      const pin::SE3 & one = data_.oMi[c.first];
      const pin::SE3 & two = data_.oMi[c.second];
      const Vector3d at = two.act(c.second_at.translation());
      for (const Row & row : c.rows)
      {
        Vector6d wrench;
        const Vector3d e = one.rotation() * row.e;
        if (row.is_point)
          wrench << e, at.cross(e);
        else
          wrench << Vector3d::Zero(), (two.rotation() * row.f).cross(e);
        for (const auto & [column, side] : c.columns)
          all_(p_.slot[std::size_t(column)], r) = side * wrench.dot(data_.J.col(column));
        ++r;
      }
    }
  }

  const Problem & p_;
  pin::Data data_;
  MatrixXd all_;
  VectorXd tau_, multipliers_;
  Eigen::PartialPivLU<MatrixXd> lu_;
};

class ForwardDynamics
{
public:
  // Without regularisation one step is exact; with it, the proximal iteration takes three to full accuracy.
  explicit ForwardDynamics(const Problem & p)
  : p_(p), data_(p.model), tau_(p.model.nv), settings_(1e-12, p.mu, p.mu > 0.0 ? 3 : 1)
  {
    for (const Constraint & c : p.constraints)
    {
      models_.emplace_back(
        pin::CONTACT_3D, p.model, c.first, c.first_at, c.second, c.second_at, pin::LOCAL);
    }
    for (const auto & model : models_)
      datas_.emplace_back(model);
    pin::initConstraintDynamics(p.model, data_, models_, datas_);
  }

  const VectorXd & operator()(std::size_t i, const Eigen::Ref<const VectorXd> & u)
  {
    tau_.setZero();
    for (Index k = 0; k < u.size(); ++k)
      tau_[p_.driven[std::size_t(k)]] = p_.transmission.row(k).dot(u);
    for (const Spring & s : p_.springs)
      tau_[s.v] -= s.stiffness * p_.q[i][s.q] - s.preload;
    return pin::constraintDynamics(p_.model, data_, p_.q[i], p_.v[i], tau_, models_, datas_, settings_);
  }

private:
  const Problem & p_;
  pin::Data data_;
  VectorXd tau_;
  pin::ProximalSettings settings_;
  std::vector<pin::RigidConstraintModel> models_;
  std::vector<pin::RigidConstraintData> datas_;
};

// Least time of one state over as many sweeps of states as fit into the time given, ns. Sweeps are of a fraction of a
// millisecond: longer ones are seldom left undisturbed.
template<typename Work>
static double nanoseconds(std::size_t states, double seconds, Work && work)
{
  states = std::min(states, std::size_t(64));
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  do
  {
    const auto before = Clock::now();
    for (std::size_t i = 0; i < states; ++i)
      work(i);
    const std::chrono::duration<double, std::nano> spent = Clock::now() - before;
    best = std::min(best, spent.count() / double(states));
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

static void print(const char * name, const MatrixXd & columns)
{
  std::printf(", \"%s\": [", name);
  for (Index i = 0; i < columns.cols(); ++i)
  {
    std::printf("%s[", i ? ", " : "");
    for (Index k = 0; k < columns.rows(); ++k)
      std::isfinite(columns(k, i)) ? std::printf("%s%.17g", k ? ", " : "", columns(k, i))
                                   : std::printf("%snull", k ? ", " : "");
    std::printf("]");
  }
  std::printf("]");
}

int main(int argc, char ** argv)
{
  if (argc != 3)
  {
    std::cerr << "usage: pinocchio_peer PROBLEM SECONDS\n";
    return 2;
  }
  try
  {
    const Problem problem = read_problem(argv[1]);
    const double seconds = std::stod(argv[2]);
    const std::size_t states = problem.q.size();
    InverseDynamics inverse(problem);
    MatrixXd u(Index(problem.driven.size()), Index(states));
    for (std::size_t i = 0; i < states; ++i)
      inverse(i, u.col(Index(i)));

    double sum = 0.0;  // used, so that no work is left out
    VectorXd force(u.rows());
    const double tree = nanoseconds(states, seconds, [&](std::size_t i) { sum += inverse.tree(i)[0]; });
    const double whole = nanoseconds(states, seconds, [&](std::size_t i) {
      inverse(i, force);
      sum += force[0];
    });
    std::printf("{\"version\": \"%s\", \"eigen\": \"%d.%d.%d\", \"rnea_ns\": %.17g, \"inverse_ns\": %.17g",
                PINOCCHIO_VERSION, EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION, tree, whole);
    print("forces", u);
    if (problem.has_forward)
    {
      ForwardDynamics forward(problem);
      MatrixXd a(problem.model.nv, Index(states));
      for (std::size_t i = 0; i < states; ++i)
        a.col(Index(i)) = forward(i, u.col(Index(i)));
      const double spent =
        nanoseconds(states, seconds, [&](std::size_t i) { sum += forward(i, u.col(Index(i)))[0]; });
      std::printf(", \"forward_ns\": %.17g", spent);
      print("accelerations", a);
    }
    std::printf(", \"is_finite\": %s}\n", std::isfinite(sum) ? "true" : "false");
  }
  catch (const std::exception & error)
  {
    std::cerr << "pinocchio_peer: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
