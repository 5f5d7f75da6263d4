// The parts of SimpleFOC 2.4.0 that the packages call, with its names and types, in front of a simulated motor and clock.
#pragma once

#include <cmath>
#include <cstdint>

static const float _2PI = 6.28318530718f;

struct DQCurrent_s {
    float d, q;
};
enum MotionControlType : uint8_t { torque = 0, velocity = 1 };
enum TorqueControlType : uint8_t { voltage = 0, foc_current = 2 };
enum FOCMotorStatus : uint8_t { motor_uncalibrated = 2, motor_ready = 4 };
enum Direction : int8_t { CW = 1, CCW = -1, UNKNOWN = 0 };

static unsigned long clock_us = 4294000000UL; // wraps soon, as after 71 minutes
static unsigned long micros() { return static_cast<uint32_t>(clock_us); }

// J w' = k i_q; currents in the stator's frame, so that angle and sign of a voltage matter
struct Simulated {
    double speed = 0.0, angle = 0.0, alpha = 0.0, beta = 0.0, u_alpha = 0.0, u_beta = 0.0, held = NAN;
    double electrical() const { return PAIRS * angle; }
    double d() const { return alpha * std::cos(electrical()) + beta * std::sin(electrical()); }
    double q() const { return beta * std::cos(electrical()) - alpha * std::sin(electrical()); }

    void turn(double seconds)
    {
        if (std::isnan(held)) {
            speed += seconds * 1.5 * PAIRS * FLUX * q() / INERTIA;
        } else {
            speed = held;
        }
        angle += seconds * speed;
    }

    // equal inductances: L i' = u - R i - e
    void conduct(double seconds)
    {
        const double e = PAIRS * speed * FLUX;
        alpha += seconds * (u_alpha - RESISTANCE * alpha + e * std::sin(electrical())) / INDUCTANCE;
        beta += seconds * (u_beta - RESISTANCE * beta - e * std::cos(electrical())) / INDUCTANCE;
    }
};
static Simulated machine;

class Sensor
{
  public:
    void update() { seen = machine.angle * direction; }
    int32_t getFullRotations() { return static_cast<int32_t>(std::floor(seen / _2PI)); }
    float getMechanicalAngle() { return static_cast<float>(seen - _2PI * std::floor(seen / _2PI)); }
    int direction = 1;

  private:
    double seen = 0.0;
};

class CurrentSense
{
  public:
    DQCurrent_s getFOCCurrents(float electrical)
    {
        const double c = std::cos(electrical), s = std::sin(electrical);
        return {static_cast<float>(machine.alpha * c + machine.beta * s),
                static_cast<float>(machine.beta * c - machine.alpha * s)};
    }
};

class FOCMotor
{
  public:
    MotionControlType controller = velocity;
    TorqueControlType torque_controller = voltage;
    FOCMotorStatus motor_status = motor_ready;
    Direction sensor_direction = CW;
    Sensor *sensor = nullptr;
    CurrentSense *current_sense = nullptr;
    DQCurrent_s current = {0.0f, 0.0f};
    float current_limit = 1e6f;
    int8_t enabled = 1;
    int pole_pairs = PAIRS;

    void enable() { enabled = 1; }
    void disable()
    {
        enabled = 0;
        target = 0.0f;
    }
    void move(float wanted) { target = wanted; }
    float electricalAngle()
    {
        return static_cast<float>(std::fmod(PAIRS * sensor_direction * static_cast<double>(sensor->getMechanicalAngle()), 6.283185307179586));
    }
    // the current loop, as a lag
    void loopFOC()
    {
        sensor->update();
        const double q = machine.q() + (1.0 - std::exp(-1e-4 / CURRENT_TIME)) * (target - machine.q());
        machine.alpha = -q * std::sin(machine.electrical());
        machine.beta = q * std::cos(machine.electrical());
        current = {0.0f, static_cast<float>(machine.q())};
    }
    void setPhaseVoltage(float q, float d, float electrical)
    {
        machine.u_alpha = d * std::cos(electrical) - q * std::sin(electrical);
        machine.u_beta = d * std::sin(electrical) + q * std::cos(electrical);
    }

  private:
    float target = 0.0f;
};
class BLDCMotor : public FOCMotor
{
};
