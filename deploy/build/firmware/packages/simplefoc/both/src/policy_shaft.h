/* SPDX-License-Identifier: Apache-2.0 */
/* The speed of a SimpleFOC motor's shaft over one control period, without SimpleFOC's filter (5 ms). */
#ifndef ${guard}_SHAFT_H
#define ${guard}_SHAFT_H

#include <SimpleFOC.h>

class ${name}_shaft
{
  public:
    float speed = 0.0f; /* rad/s */
    /* 1 and -1 by turns. The gate takes values that repeat for a frozen sensor; an encoder's and a converter's do at
     * rest, so readings are shifted by less than their noise. */
    float shift = 1.0f;

    /* After the sensor's update, with the time since the last one in s; false where there was none. */
    bool measure(FOCMotor &motor, float elapsed)
    {
        const int32_t new_turns = motor.sensor->getFullRotations();
        const float new_angle = motor.sensor->getMechanicalAngle();
        const float moved = (float)(new_turns - turns) * _2PI + (new_angle - angle);
        const bool both = known && elapsed > 0.0f;
        turns = new_turns;
        angle = new_angle;
        known = true;
        if (both) {
            shift = -shift;
            speed = (float)motor.sensor_direction * moved / elapsed + shift * ${speed_shift};
        }
        return both;
    }

  private:
    bool known = false; /* the angle a period ago */
    int32_t turns = 0;
    float angle = 0.0f;
};

#endif
