// Pinocchio at its best on one machine with closed loops: reads the machine and its states as text, times, prints JSON.
//
// Usage: pinocchio_peer PROBLEM SECONDS WORK   (`problem_text` in pinocchio_cpp.py writes PROBLEM)
// WORK: dynamics (inverse and forward), derivatives of these, regressor, or rollout (forward dynamics integrated under
// given forces).
//
// Headers only: the library's own instantiations are not linked, so that -march=native holds for all of it.
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/algorithm/jacobian.hpp>
#include <pinocchio/algorithm/kinematics.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/constrained-dynamics-derivatives.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/regressor.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>

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
  double period = 0.0;         // of the forces, s
  std::vector<VectorXd> held;  // actuator forces, each held for a period from the first state on
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
  p.period = in.number();
  const Index periods = in.count();
  for (Index i = 0; i < periods; ++i)
    p.held.push_back(in.vector(actuators));
  return p;
}

// What a user of Pinocchio would write for inverse dynamics with loops, all memory taken beforehand.
class InverseDynamics
{
public:
  explicit InverseDynamics(const Problem & p)
  : p_(p), data_(p.model), all_(MatrixXd::Zero(p.model.nv, p.passive)), tau_(p.model.nv), lu_(p.passive),
    ordered_(p.model.nv, 10 * (p.model.njoints - 1)), shared_(p.passive, p.model.nv - p.passive)
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

  // Regressor of the actuator forces (n_u, 10 n_joints): the tree's, the multipliers taken out by one projection.
  void regressor(std::size_t i, MatrixXd & Y)
  {
    const MatrixXd & tree = pin::computeJointTorqueRegressor(p_.model, data_, p_.q[i], p_.v[i], p_.a[i]);
    for (Index k = 0; k < p_.model.nv; ++k)
      ordered_.row(p_.slot[std::size_t(k)]) = tree.row(k);
    project(Y);
  }

  // Actuator forces that the regressor does not hold: of rotors and springs.
  VectorXd besides(std::size_t i)
  {
    MatrixXd u;
    MatrixXd inertial = ordered_;
    ordered_.setZero(p_.model.nv, 1);
    for (Index k = 0; k < p_.model.nv; ++k)
      ordered_(p_.slot[std::size_t(k)], 0) = p_.armature[k] * p_.a[i][k];
    for (const Spring & s : p_.springs)
      ordered_(p_.slot[std::size_t(s.v)], 0) += s.stiffness * p_.q[i][s.q] - s.preload;
    project(u);
    ordered_ = inertial;
    return u.col(0);
  }

private:
  // S^-1 (driven rows - K_d^T K_p^-T passive rows); the placement of each joint against the one before is known.
  void project(MatrixXd & u)
  {
    pin::updateGlobalPlacements(p_.model, data_);
    pin::computeJointJacobians(p_.model, data_);
    fill();
    const Index n = p_.model.nv - p_.passive;
    u = ordered_.bottomRows(n);
    if (p_.passive > 0)
    {
      lu_.compute(all_.topRows(p_.passive));
      shared_.noalias() = lu_.transpose().solve(all_.bottomRows(n).transpose());
      u.noalias() -= shared_.transpose() * ordered_.topRows(p_.passive);
    }
    u = (p_.transmission_inverse * u).eval();
  }

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
  MatrixXd ordered_, shared_;  // rows to be projected, passive ones first; K_p^-1 K_d
};

class ForwardDynamics
{
public:
  // Without regularization one step is exact; with it, the proximal iteration takes three to full accuracy.
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
    return (*this)(p_.q[i], p_.v[i], u);
  }

  const VectorXd & operator()(const VectorXd & q, const VectorXd & v, const Eigen::Ref<const VectorXd> & u)
  {
    tau_.setZero();
    for (Index k = 0; k < u.size(); ++k)
      tau_[p_.driven[std::size_t(k)]] = p_.transmission.row(k).dot(u);
    for (const Spring & s : p_.springs)
      tau_[s.v] -= s.stiffness * q[s.q] - s.preload;
    return pin::constraintDynamics(p_.model, data_, q, v, tau_, models_, datas_, settings_);
  }

  // Derivatives of the accelerations by configuration, velocity and torques, at the last state.
  const pin::Data & derivatives()
  {
    pin::computeConstraintDynamicsDerivatives(p_.model, data_, models_, datas_, settings_);
    return data_;
  }

private:
  const Problem & p_;
  pin::Data data_;
  VectorXd tau_;
  pin::ProximalSettings settings_;
  std::vector<pin::RigidConstraintModel> models_;
  std::vector<pin::RigidConstraintData> datas_;
};

// Runge-Kutta 4 with one step for each held force, from the first state.
class Rollout
{
public:
  explicit Rollout(const Problem & p) : p_(p), forward_(p), q_(p.model.nq), next_(p.model.nq) {}

  // Coordinates after each period (n_q, N).
  void operator()(MatrixXd & reached)
  {
    const double h = p_.period;
    q_ = p_.q[0];
    VectorXd v = p_.v[0];
    for (std::size_t i = 0; i < p_.held.size(); ++i)
    {
      const VectorXd & u = p_.held[i];
      const VectorXd a1 = forward_(q_, v, u);
      const VectorXd v2 = v + 0.5 * h * a1;
      pin::integrate(p_.model, q_, VectorXd(0.5 * h * v), next_);
      const VectorXd a2 = forward_(next_, v2, u);
      const VectorXd v3 = v + 0.5 * h * a2;
      pin::integrate(p_.model, q_, VectorXd(0.5 * h * v2), next_);
      const VectorXd a3 = forward_(next_, v3, u);
      const VectorXd v4 = v + h * a3;
      pin::integrate(p_.model, q_, VectorXd(h * v3), next_);
      const VectorXd a4 = forward_(next_, v4, u);
      pin::integrate(p_.model, q_, VectorXd(h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)), next_);
      v += h / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4);
      q_.swap(next_);
      reached.col(Index(i)) = q_;
    }
  }

private:
  const Problem & p_;
  ForwardDynamics forward_;
  VectorXd q_, next_;
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

static void dynamics(const Problem & problem, double seconds)
{
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
  std::printf(", \"rnea_ns\": %.17g, \"inverse_ns\": %.17g", tree, whole);
  print("forces", u);
  if (problem.has_forward)
  {
    ForwardDynamics forward(problem);
    MatrixXd a(problem.model.nv, Index(states));
    for (std::size_t i = 0; i < states; ++i)
      a.col(Index(i)) = forward(i, u.col(Index(i)));
    const double spent = nanoseconds(states, seconds, [&](std::size_t i) { sum += forward(i, u.col(Index(i)))[0]; });
    std::printf(", \"forward_ns\": %.17g", spent);
    print("accelerations", a);
  }
  std::printf(", \"is_finite\": %s", std::isfinite(sum) ? "true" : "false");
}

// Largest difference of a matrix from central differences of a function of displacements, as a share of its largest.
template<typename Function>
static double away(const MatrixXd & matrix, Function && function)
{
  const double h = 1e-6;
  MatrixXd slopes(matrix.rows(), matrix.cols());
  for (Index k = 0; k < matrix.cols(); ++k)
  {
    const VectorXd step = h * VectorXd::Unit(matrix.cols(), k);
    const VectorXd ahead = function(step);
    slopes.col(k) = (ahead - function(VectorXd(-step))) / (2.0 * h);
  }
  return (matrix - slopes).cwiseAbs().maxCoeff() / std::max(slopes.cwiseAbs().maxCoeff(), 1e-300);
}

// Values, and values with derivatives: of a tree by rnea and aba, of loops by constraintDynamics.
static void derivatives(const Problem & p, double seconds)
{
  const pin::Model & model = p.model;
  const std::size_t states = p.q.size();
  pin::Data data(model);
  double sum = 0.0, worst = 0.0;
  const auto moved = [&](std::size_t i, const VectorXd & step) {
    VectorXd q(model.nq);
    pin::integrate(model, p.q[i], step, q);
    return q;
  };
  if (p.constraints.empty())
  {
    std::vector<VectorXd> tau;
    for (std::size_t i = 0; i < states; ++i)
      tau.push_back(pin::rnea(model, data, p.q[i], p.v[i], p.a[i]));
    pin::computeRNEADerivatives(model, data, p.q[0], p.v[0], p.a[0]);
    pin::Data other(model);
    worst = away(data.dtau_dq, [&](const VectorXd & step) {
      return VectorXd(pin::rnea(model, other, moved(0, step), p.v[0], p.a[0]));
    });
    pin::computeABADerivatives(model, data, p.q[0], p.v[0], tau[0]);
    worst = std::max(worst, away(data.ddq_dq, [&](const VectorXd & step) {
      return VectorXd(pin::aba(model, other, moved(0, step), p.v[0], tau[0], pin::Convention::WORLD));
    }));
    const double inverse = nanoseconds(states, seconds, [&](std::size_t i) {
      sum += pin::rnea(model, data, p.q[i], p.v[i], p.a[i])[0];
    });
    const double both = nanoseconds(states, seconds, [&](std::size_t i) {
      pin::computeRNEADerivatives(model, data, p.q[i], p.v[i], p.a[i]);
      sum += data.dtau_dq(0, 0);
    });
    const double forward = nanoseconds(states, seconds, [&](std::size_t i) {
      sum += pin::aba(model, data, p.q[i], p.v[i], tau[i], pin::Convention::WORLD)[0];
    });
    const double forward_both = nanoseconds(states, seconds, [&](std::size_t i) {
      pin::computeABADerivatives(model, data, p.q[i], p.v[i], tau[i]);
      sum += data.ddq_dq(0, 0);
    });
    std::printf(", \"inverse\": [%.17g, %.17g], \"forward\": [%.17g, %.17g]", inverse, both, forward, forward_both);
  }
  else
  {
    if (!p.has_forward) throw std::runtime_error("its constraints are not of points alone, or links are massless");
    InverseDynamics inverse(p);
    MatrixXd u(Index(p.driven.size()), Index(states));
    for (std::size_t i = 0; i < states; ++i)
      inverse(i, u.col(Index(i)));
    ForwardDynamics forward(p), other(p);
    forward(0, u.col(0));
    const MatrixXd by_q = forward.derivatives().ddq_dq;
    worst = away(by_q, [&](const VectorXd & step) { return VectorXd(other(moved(0, step), p.v[0], u.col(0))); });
    const double value = nanoseconds(states, seconds, [&](std::size_t i) { sum += forward(i, u.col(Index(i)))[0]; });
    const double both = nanoseconds(states, seconds, [&](std::size_t i) {
      forward(i, u.col(Index(i)));
      sum += forward.derivatives().ddq_dq(0, 0);
    });
    std::printf(", \"forward\": [%.17g, %.17g]", value, both);
  }
  std::printf(", \"worst\": %.17g, \"is_finite\": %s", worst, std::isfinite(sum) ? "true" : "false");
}

static void regressor(const Problem & problem, double seconds)
{
  const std::size_t states = problem.q.size();
  InverseDynamics inverse(problem);
  VectorXd pi(10 * (problem.model.njoints - 1));
  for (pin::JointIndex j = 1; j < pin::JointIndex(problem.model.njoints); ++j)
    pi.segment<10>(10 * (Index(j) - 1)) = problem.model.inertias[j].toDynamicParameters();
  MatrixXd u(Index(problem.driven.size()), Index(states)), Y;
  for (std::size_t i = 0; i < states; ++i)
  {
    inverse.regressor(i, Y);
    u.col(Index(i)) = Y * pi + inverse.besides(i);
  }
  double sum = 0.0;
  const double spent = nanoseconds(states, seconds, [&](std::size_t i) {
    inverse.regressor(i, Y);
    sum += Y(0, 0);
  });
  std::printf(", \"regressor_ns\": %.17g, \"columns\": %d", spent, int(Y.cols()));
  print("forces", u);
  std::printf(", \"is_finite\": %s", std::isfinite(sum) ? "true" : "false");
}

static void rollout(const Problem & problem, double seconds)
{
  Rollout run(problem);
  MatrixXd reached(problem.model.nq, Index(problem.held.size()));
  const double spent = nanoseconds(1, seconds, [&](std::size_t) { run(reached); });
  std::printf(", \"rollout_ns\": %.17g", spent);
  print("coordinates", reached);
}

int main(int argc, char ** argv)
{
  if (argc != 4)
  {
    std::cerr << "usage: pinocchio_peer PROBLEM SECONDS dynamics|derivatives|regressor|rollout\n";
    return 2;
  }
  try
  {
    const Problem problem = read_problem(argv[1]);
    const double seconds = std::stod(argv[2]);
    const std::string work = argv[3];
    std::printf("{\"version\": \"%s\", \"eigen\": \"%d.%d.%d\"",
                PINOCCHIO_VERSION, EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
    if (work == "dynamics") dynamics(problem, seconds);
    else if (work == "derivatives") derivatives(problem, seconds);
    else if (work == "regressor") regressor(problem, seconds);
    else if (work == "rollout") rollout(problem, seconds);
    else throw std::runtime_error("unknown work " + work);
    std::printf("}\n");
  }
  catch (const std::exception & error)
  {
    std::cerr << "pinocchio_peer: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
