/* SPDX-License-Identifier: Apache-2.0 */
/* Made by robo-rl from a bundle; do not edit. Recorded steps and what must come out. */
#include "policy.h"

#include <math.h>

const policy_signals policy_recorded_signals[POLICY_GOLDEN_STEPS] = {
    {
        .position = {0x1.1a7142p-3f, 0x1.1545e2p-5f, (-0x1.1a322ap-3f)}, /* 0.137911, 0.0338468, -0.137791 */
        .orientation = {0x1.94313cp-2f, 0x1.c00304p-5f, 0x1.b41958p-1f, 0x1.5c5662p-2f}, /* 0.394719, 0.0546889, 0.851756, 0.340173 */
        .linear_velocity = {0x1.730a3p-1f, (-0x1.0380f8p-3f), (-0x1.35c94ap-2f)}, /* 0.724687, -0.126711, -0.302526 */
        .angular_velocity = {0x1.10a382p-5f, 0x1.e64044p-1f, 0x1.021f32p-8f}, /* 0.0332811, 0.949709, 0.00393863 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.1a9794p-3f, 0x1.0cf554p-5f, (-0x1.1e62bap-3f)}, /* 0.137984, 0.0328318, -0.139837 */
        .orientation = {0x1.92d4f4p-2f, 0x1.c25ac8p-5f, 0x1.b3c12p-1f, 0x1.5f9382p-2f}, /* 0.39339, 0.0549749, 0.851083, 0.343336 */
        .linear_velocity = {0x1.7a138ap-1f, (-0x1.4b8a32p-3f), (-0x1.47bd84p-2f)}, /* 0.73843, -0.161885, -0.320059 */
        .angular_velocity = {0x1.8e8068p-5f, 0x1.f2b7a4p-1f, (-0x1.5b8f74p-9f)}, /* 0.0486452, 0.974057, -0.00265168 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.1ccdc8p-3f, 0x1.1271acp-5f, (-0x1.1f3da4p-3f)}, /* 0.139064, 0.0335015, -0.140254 */
        .orientation = {0x1.8dd4c6p-2f, 0x1.d70f4ap-5f, 0x1.b6631ap-1f, 0x1.57aa74p-2f}, /* 0.388507, 0.0575024, 0.856225, 0.335611 */
        .linear_velocity = {0x1.946536p-1f, (-0x1.545af8p-3f), (-0x1.5fd9f4p-2f)}, /* 0.789835, -0.166189, -0.343605 */
        .angular_velocity = {0x1.f5a8ap-8f, 0x1.234046p+0f, (-0x1.31181p-8f)}, /* 0.0076547, 1.1377, -0.00465536 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.3889cp-3f, 0x1.c3440cp-6f, (-0x1.29a42ep-3f)}, /* 0.152606, 0.0275431, -0.145333 */
        .orientation = {0x1.89f312p-2f, 0x1.dc9634p-5f, 0x1.b7090cp-1f, 0x1.58b4e2p-2f}, /* 0.384716, 0.0581771, 0.857491, 0.336628 */
        .linear_velocity = {0x1.b8e17ap-1f, (-0x1.51f02p-3f), (-0x1.9cb698p-2f)}, /* 0.861095, -0.165009, -0.40304 */
        .angular_velocity = {(-0x1.ef2086p-5f), 0x1.8db29ap+0f, (-0x1.b4b242p-5f)}, /* -0.0604403, 1.55351, -0.0533077 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.4d0b02p-3f, 0x1.b810c8p-6f, (-0x1.35a022p-3f)}, /* 0.162619, 0.0268595, -0.151184 */
        .orientation = {0x1.7eb7cep-2f, 0x1.d81b44p-5f, 0x1.b944cep-1f, 0x1.5a0bbep-2f}, /* 0.373748, 0.0576302, 0.861853, 0.337935 */
        .linear_velocity = {0x1.d2896cp-1f, (-0x1.6f4d48p-3f), (-0x1.a4d006p-2f)}, /* 0.911205, -0.179347, -0.41095 */
        .angular_velocity = {(-0x1.3bfb48p-2f), 0x1.10522p+1f, (-0x1.1ef5dp-3f)}, /* -0.308576, 2.12751, -0.140117 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.5f2c34p-3f, 0x1.bc283ap-6f, (-0x1.34878ep-3f)}, /* 0.171471, 0.0271092, -0.150649 */
        .orientation = {0x1.752de6p-2f, 0x1.fcaf64p-5f, 0x1.baf714p-1f, 0x1.5afbc6p-2f}, /* 0.364433, 0.0620954, 0.865166, 0.338851 */
        .linear_velocity = {0x1.efd1b8p-1f, (-0x1.78abdp-3f), (-0x1.c359cp-2f)}, /* 0.968397, -0.183921, -0.440772 */
        .angular_velocity = {(-0x1.75b62ep-1f), 0x1.6b4134p+1f, (-0x1.999c78p-3f)}, /* -0.729906, 2.83793, -0.200005 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.737048p-3f, 0x1.a7c458p-6f, (-0x1.3c4c6p-3f)}, /* 0.181367, 0.0258647, -0.154443 */
        .orientation = {0x1.61ab32p-2f, 0x1.0d7fdp-4f, 0x1.be9fe2p-1f, 0x1.5bf046p-2f}, /* 0.34538, 0.0657957, 0.872314, 0.339784 */
        .linear_velocity = {0x1.0adep+0f, (-0x1.88cdc8p-3f), (-0x1.d958p-2f)}, /* 1.04245, -0.191799, -0.46225 */
        .angular_velocity = {(-0x1.3ad8ep+0f), 0x1.c5d93cp+1f, (-0x1.ee8f54p-3f)}, /* -1.22987, 3.54569, -0.241484 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.8886ap-3f, 0x1.9435f2p-6f, (-0x1.4d35aep-3f)}, /* 0.191663, 0.0246711, -0.1627 */
        .orientation = {0x1.4f3506p-2f, 0x1.14d04cp-4f, 0x1.c17c1ep-1f, 0x1.5f1b9ap-2f}, /* 0.327351, 0.0675815, 0.8779, 0.342879 */
        .linear_velocity = {0x1.194bbp+0f, (-0x1.c8cep-3f), (-0x1.00ecb8p-1f)}, /* 1.09881, -0.223049, -0.501806 */
        .angular_velocity = {(-0x1.b0ea1ep+0f), 0x1.0fb194p+2f, (-0x1.e1df6ep-3f)}, /* -1.69107, 4.24521, -0.235289 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.a1f6f2p-3f, 0x1.57677ap-6f, (-0x1.54daeep-3f)}, /* 0.204084, 0.0209597, -0.166433 */
        .orientation = {0x1.39d452p-2f, 0x1.07a3dcp-4f, 0x1.c53158p-1f, 0x1.606e9cp-2f}, /* 0.306474, 0.0643653, 0.885142, 0.344172 */
        .linear_velocity = {0x1.26b71ap+0f, (-0x1.c87376p-3f), (-0x1.f787d6p-2f)}, /* 1.15123, -0.222876, -0.491729 */
        .angular_velocity = {(-0x1.0dfd1cp+1f), 0x1.38e492p+2f, (-0x1.abaff8p-3f)}, /* -2.10929, 4.88895, -0.208832 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.b6547p-3f, 0x1.4ade96p-6f, (-0x1.620d18p-3f)}, /* 0.214028, 0.0201947, -0.172877 */
        .orientation = {0x1.1bb7fep-2f, 0x1.1001aap-4f, 0x1.c99ddap-1f, 0x1.62b02p-2f}, /* 0.277069, 0.0664078, 0.893782, 0.346375 */
        .linear_velocity = {0x1.3537f8p+0f, (-0x1.d6cbfep-3f), (-0x1.f6a33ap-2f)}, /* 1.20789, -0.229881, -0.490857 */
        .angular_velocity = {(-0x1.448084p+1f), 0x1.603e4cp+2f, (-0x1.d9303p-3f)}, /* -2.53517, 5.5038, -0.231049 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d7cd9ap-3f, 0x1.23b0bp-6f, (-0x1.659b2p-3f)}, /* 0.230373, 0.0178034, -0.174612 */
        .orientation = {0x1.f9df5p-3f, 0x1.068f5ep-4f, 0x1.cd40b8p-1f, 0x1.678c0cp-2f}, /* 0.247008, 0.0641016, 0.900884, 0.35112 */
        .linear_velocity = {0x1.414682p+0f, (-0x1.abdd18p-3f), (-0x1.fa2aecp-2f)}, /* 1.25498, -0.208918, -0.494304 */
        .angular_velocity = {(-0x1.7dbb58p+1f), 0x1.88819ep+2f, (-0x1.3bdc64p-2f)}, /* -2.98228, 6.13291, -0.308458 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.ed9986p-3f, 0x1.3c8e6p-6f, (-0x1.75f302p-3f)}, /* 0.241015, 0.0193211, -0.182592 */
        .orientation = {0x1.b0bc22p-3f, 0x1.d8ffc2p-5f, 0x1.d1319cp-1f, 0x1.6c342p-2f}, /* 0.211296, 0.0577391, 0.908582, 0.355668 */
        .linear_velocity = {0x1.4d2144p+0f, (-0x1.03bbe8p-2f), (-0x1.fdbfeap-2f)}, /* 1.30129, -0.253646, -0.497802 */
        .angular_velocity = {(-0x1.b47566p+1f), 0x1.a9b12ap+2f, (-0x1.397accp-2f)}, /* -3.40983, 6.65144, -0.306132 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.051714p-2f, 0x1.58f6bp-7f, (-0x1.7adf36p-3f)}, /* 0.254971, 0.0105275, -0.184996 */
        .orientation = {0x1.5e5872p-3f, 0x1.d6573cp-5f, 0x1.d54ab8p-1f, 0x1.6d5e74p-2f}, /* 0.171067, 0.0574146, 0.916586, 0.356806 */
        .linear_velocity = {0x1.59f40cp+0f, (-0x1.ab0b7cp-3f), (-0x1.f56512p-2f)}, /* 1.35138, -0.208518, -0.489643 */
        .angular_velocity = {(-0x1.e88606p+1f), 0x1.cb5604p+2f, (-0x1.27db0cp-2f)}, /* -3.81659, 7.17712, -0.288922 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.10cafep-2f, 0x1.8bd5p-7f, (-0x1.8fb416p-3f)}, /* 0.266399, 0.0120798, -0.195168 */
        .orientation = {0x1.0f313ep-3f, 0x1.9d65d2p-5f, 0x1.d891a4p-1f, 0x1.6e611ap-2f}, /* 0.132418, 0.0504636, 0.922986, 0.357792 */
        .linear_velocity = {0x1.617dcep+0f, (-0x1.b84cccp-3f), (-0x1.e869ep-2f)}, /* 1.38083, -0.21499, -0.476966 */
        .angular_velocity = {(-0x1.0ecbcep+2f), 0x1.e5c158p+2f, (-0x1.2e3b1ap-2f)}, /* -4.23119, 7.58993, -0.295147 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.2066d4p-2f, 0x1.835302p-8f, (-0x1.8c9b8p-3f)}, /* 0.281642, 0.0059101, -0.193656 */
        .orientation = {0x1.7171e8p-4f, 0x1.658bep-5f, 0x1.db7d6ep-1f, 0x1.6da138p-2f}, /* 0.0901965, 0.0436458, 0.928691, 0.35706 */
        .linear_velocity = {0x1.65a418p+0f, (-0x1.c6fa5ap-3f), (-0x1.d52386p-2f)}, /* 1.39704, -0.222157, -0.458143 */
        .angular_velocity = {(-0x1.2899aap+2f), 0x1.fb1dbap+2f, (-0x1.56925p-2f)}, /* -4.63438, 7.92369, -0.334543 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.3049ap-2f, 0x1.1b4cfp-7f, (-0x1.925268p-3f)}, /* 0.297156, 0.00864565, -0.196446 */
        .orientation = {0x1.52de56p-5f, 0x1.334de8p-5f, 0x1.dcb7fp-1f, 0x1.7123c2p-2f}, /* 0.0413658, 0.0375127, 0.931091, 0.360488 */
        .linear_velocity = {0x1.6d2588p+0f, (-0x1.bedffcp-3f), (-0x1.af5cf8p-2f)}, /* 1.42635, -0.218201, -0.421253 */
        .angular_velocity = {(-0x1.3df78ap+2f), 0x1.026146p+3f, (-0x1.66e1eep-2f)}, /* -4.96823, 8.07437, -0.350471 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.3e189p-2f, 0x1.811584p-10f, (-0x1.a283cap-3f)}, /* 0.310641, 0.00146898, -0.204353 */
        .orientation = {(-0x1.eb6058p-8f), 0x1.9f38a2p-6f, 0x1.dcfa5ep-1f, 0x1.733ad4p-2f}, /* -0.00749781, 0.0253431, 0.931598, 0.362529 */
        .linear_velocity = {0x1.6ab1b4p+0f, (-0x1.83ddfcp-3f), (-0x1.a00878p-2f)}, /* 1.41677, -0.189388, -0.406282 */
        .angular_velocity = {(-0x1.4c81bcp+2f), 0x1.03c7dp+3f, (-0x1.806d12p-2f)}, /* -5.19542, 8.11814, -0.375416 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.4eb2fp-2f, 0x1.e44538p-9f, (-0x1.ad2686p-3f)}, /* 0.326854, 0.00369469, -0.209546 */
        .orientation = {(-0x1.9f9a42p-5f), 0x1.25871cp-6f, 0x1.dbdb94p-1f, 0x1.75de8ep-2f}, /* -0.0507327, 0.0179155, 0.92941, 0.365107 */
        .linear_velocity = {0x1.640716p+0f, (-0x1.6836a4p-3f), (-0x1.8f4b1p-2f)}, /* 1.39073, -0.175885, -0.389935 */
        .angular_velocity = {(-0x1.541784p+2f), 0x1.002d48p+3f, (-0x1.8c0b08p-2f)}, /* -5.31394, 8.00553, -0.386761 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.5acb1p-2f, 0x1.7c51c4p-12f, (-0x1.b469cep-3f)}, /* 0.338665, 0.000362701, -0.213092 */
        .orientation = {(-0x1.9a3c28p-4f), 0x1.871554p-8f, 0x1.da79e2p-1f, 0x1.72d2cep-2f}, /* -0.100155, 0.00596746, 0.926711, 0.362132 */
        .linear_velocity = {0x1.617182p+0f, (-0x1.6c6366p-3f), (-0x1.7f66ap-2f)}, /* 1.38064, -0.177924, -0.374415 */
        .angular_velocity = {(-0x1.57eb28p+2f), 0x1.f2ccf6p+2f, (-0x1.cdd9e8p-2f)}, /* -5.37373, 7.79376, -0.451027 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.69983cp-2f, (-0x1.b9555cp-9f), (-0x1.ba5368p-3f)}, /* 0.35312, -0.00336711, -0.215979 */
        .orientation = {(-0x1.2791bep-3f), 0x1.0786e2p-12f, 0x1.d78c5ap-1f, 0x1.728bd8p-2f}, /* -0.144321, 0.000251319, 0.920993, 0.361862 */
        .linear_velocity = {0x1.52afb4p+0f, (-0x1.32caf8p-3f), (-0x1.5693e2p-2f)}, /* 1.32299, -0.149801, -0.334549 */
        .angular_velocity = {(-0x1.553da4p+2f), 0x1.dfcb34p+2f, (-0x1.ca9c36p-2f)}, /* -5.33189, 7.49678, -0.447862 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.743d52p-2f, (-0x1.53ba82p-9f), (-0x1.c2f66ap-3f)}, /* 0.363515, -0.00259192, -0.220197 */
        .orientation = {(-0x1.816f0ep-3f), (-0x1.04fe48p-6f), 0x1.d3babp-1f, 0x1.70e68p-2f}, /* -0.1882, -0.0159298, 0.913534, 0.360254 */
        .linear_velocity = {0x1.4da452p+0f, (-0x1.0bdbfep-3f), (-0x1.452b2cp-2f)}, /* 1.30329, -0.130791, -0.317548 */
        .angular_velocity = {(-0x1.4ebc12p+2f), 0x1.bfc98cp+2f, (-0x1.00e22p-1f)}, /* -5.23023, 6.99668, -0.501725 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.81e5a6p-2f, (-0x1.8ee4acp-8f), (-0x1.c5311cp-3f)}, /* 0.376853, -0.00608663, -0.221285 */
        .orientation = {(-0x1.d265fep-3f), (-0x1.bc08f2p-6f), 0x1.cf0814p-1f, 0x1.708d7ap-2f}, /* -0.227734, -0.0271017, 0.904359, 0.359915 */
        .linear_velocity = {0x1.39e98p+0f, (-0x1.ddb8acp-4f), (-0x1.43352ep-2f)}, /* 1.22622, -0.116631, -0.315633 */
        .angular_velocity = {(-0x1.455f5cp+2f), 0x1.a00d84p+2f, (-0x1.2fae2ap-1f)}, /* -5.08395, 6.50082, -0.593126 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.8c530cp-2f, (-0x1.cb28ep-10f), (-0x1.ccd92cp-3f)}, /* 0.387036, -0.00175156, -0.225024 */
        .orientation = {(-0x1.0e7af8p-2f), (-0x1.4fcaeap-5f), 0x1.caa1c6p-1f, 0x1.6bb49cp-2f}, /* -0.264141, -0.0409903, 0.895765, 0.355181 */
        .linear_velocity = {0x1.2ee8p+0f, (-0x1.970a4ep-4f), (-0x1.468354p-2f)}, /* 1.18323, -0.0993751, -0.31886 */
        .angular_velocity = {(-0x1.32e986p+2f), 0x1.7bba84p+2f, (-0x1.44fd86p-1f)}, /* -4.7955, 5.93326, -0.634747 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.9902d6p-2f, (-0x1.0ef214p-7f), (-0x1.d72d3p-3f)}, /* 0.399425, -0.0082686, -0.230067 */
        .orientation = {(-0x1.31ca4ep-2f), (-0x1.acc534p-5f), 0x1.c59082p-1f, 0x1.6799e2p-2f}, /* -0.298623, -0.0523401, 0.885868, 0.351173 */
        .linear_velocity = {0x1.1bf75p+0f, (-0x1.391d54p-4f), (-0x1.3696fep-2f)}, /* 1.10924, -0.076444, -0.30331 */
        .angular_velocity = {(-0x1.1f0642p+2f), 0x1.522fe4p+2f, (-0x1.65b278p-1f)}, /* -4.48476, 5.28417, -0.698627 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.a56ba8p-2f, (-0x1.529efap-7f), (-0x1.d12d8cp-3f)}, /* 0.411543, -0.0103339, -0.227138 */
        .orientation = {(-0x1.4c1ceap-2f), (-0x1.fc6cb6p-5f), 0x1.c0679cp-1f, 0x1.6883c2p-2f}, /* -0.324329, -0.0620636, 0.87579, 0.352065 */
        .linear_velocity = {0x1.085f7ep+0f, (-0x1.a14212p-5f), (-0x1.33440ep-2f)}, /* 1.03271, -0.0509348, -0.300064 */
        .angular_velocity = {(-0x1.0277a2p+2f), 0x1.2194bep+2f, (-0x1.89d088p-1f)}, /* -4.03855, 4.5247, -0.769169 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.addd58p-2f, (-0x1.355028p-7f), (-0x1.e269a4p-3f)}, /* 0.41979, -0.00943949, -0.235553 */
        .orientation = {(-0x1.66f7ep-2f), (-0x1.34fe58p-4f), 0x1.bb13aep-1f, 0x1.6671aep-2f}, /* -0.350555, -0.0754379, 0.865385, 0.350043 */
        .linear_velocity = {0x1.eee59ep-1f, (-0x1.ddf17p-5f), (-0x1.4d0786p-2f)}, /* 0.966596, -0.0583427, -0.325224 */
        .angular_velocity = {(-0x1.c4273cp+1f), 0x1.dfd374p+1f, (-0x1.a5498cp-1f)}, /* -3.53245, 3.74864, -0.822827 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.b92402p-2f, (-0x1.33014cp-9f), (-0x1.ecba6cp-3f)}, /* 0.430801, -0.00234226, -0.24059 */
        .orientation = {(-0x1.79f416p-2f), (-0x1.682e76p-4f), 0x1.b709c2p-1f, 0x1.63cf78p-2f}, /* -0.369095, -0.0879349, 0.857496, 0.347471 */
        .linear_velocity = {0x1.bc8da2p-1f, (-0x1.be21e4p-6f), (-0x1.381804p-2f)}, /* 0.868268, -0.0272298, -0.304779 */
        .angular_velocity = {(-0x1.88f33cp+1f), 0x1.79f2a6p+1f, (-0x1.c5656p-1f)}, /* -3.06992, 2.95272, -0.885539 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.c0cbccp-2f, (-0x1.c41844p-8f), (-0x1.ed3226p-3f)}, /* 0.438277, -0.00689842, -0.240818 */
        .orientation = {(-0x1.889f64p-2f), (-0x1.83d068p-4f), 0x1.b408b6p-1f, 0x1.60e012p-2f}, /* -0.383421, -0.0946812, 0.851629, 0.344605 */
        .linear_velocity = {0x1.8ad4ap-1f, (-0x1.7afe5cp-8f), (-0x1.45700cp-2f)}, /* 0.771153, -0.00578298, -0.31781 */
        .angular_velocity = {(-0x1.3f30cep+1f), 0x1.10bf24p+1f, (-0x1.dff544p-1f)}, /* -2.49368, 2.13083, -0.937418 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.c77452p-2f, (-0x1.d5254cp-8f), (-0x1.f3372ap-3f)}, /* 0.44478, -0.0071586, -0.243758 */
        .orientation = {(-0x1.95c6f6p-2f), (-0x1.92bc92p-4f), 0x1.aff118p-1f, 0x1.650e42p-2f}, /* -0.396267, -0.0983244, 0.843636, 0.348687 */
        .linear_velocity = {0x1.5b7088p-1f, 0x1.0b3344p-6f, (-0x1.519acap-2f)}, /* 0.678593, 0.0163086, -0.329692 */
        .angular_velocity = {(-0x1.eee518p+0f), 0x1.596996p+0f, (-0x1.01290ep+0f)}, /* -1.93318, 1.34927, -1.00453 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.cdf4fap-2f, (-0x1.1453a8p-7f), (-0x1.f854d6p-3f)}, /* 0.45113, -0.00843282, -0.246256 */
        .orientation = {(-0x1.9d6ea2p-2f), (-0x1.c28bfcp-4f), 0x1.ad5a62p-1f, 0x1.65314cp-2f}, /* -0.403742, -0.109997, 0.83858, 0.348821 */
        .linear_velocity = {0x1.1fac14p-1f, 0x1.5b034p-5f, (-0x1.6dab58p-2f)}, /* 0.56186, 0.0423599, -0.357099 */
        .angular_velocity = {(-0x1.5bc168p+0f), 0x1.376df4p-1f, (-0x1.0c11a4p+0f)}, /* -1.35842, 0.608261, -1.04714 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d3107p-2f, (-0x1.8a8f8p-8f), (-0x1.031506p-2f)}, /* 0.456117, -0.00602052, -0.25301 */
        .orientation = {(-0x1.9ddbcp-2f), (-0x1.c3f7d2p-4f), 0x1.ac3112p-1f, 0x1.6a2112p-2f}, /* -0.404159, -0.110344, 0.836312, 0.353642 */
        .linear_velocity = {0x1.e1cafp-2f, 0x1.9056acp-5f, (-0x1.7e6a48p-2f)}, /* 0.470501, 0.0488695, -0.373452 */
        .angular_velocity = {(-0x1.8ec53cp-1f), (-0x1.03aab4p-3f), (-0x1.1172e6p+0f)}, /* -0.778849, -0.12679, -1.06816 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d6a092p-2f, (-0x1.17677p-7f), (-0x1.0975bcp-2f)}, /* 0.459597, -0.00852674, -0.259238 */
        .orientation = {(-0x1.9a64fp-2f), (-0x1.e5122p-4f), 0x1.abec9p-1f, 0x1.6ca6bcp-2f}, /* -0.400776, -0.118425, 0.835789, 0.356105 */
        .linear_velocity = {0x1.7977bp-2f, 0x1.458cd2p-4f, (-0x1.7f1944p-2f)}, /* 0.368621, 0.07948, -0.37412 */
        .angular_velocity = {(-0x1.6d942cp-3f), (-0x1.a2a91cp-1f), (-0x1.25c3e2p+0f)}, /* -0.178505, -0.817696, -1.14752 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.dc0422p-2f, (-0x1.2b5644p-8f), (-0x1.0cbd3cp-2f)}, /* 0.46486, -0.00456752, -0.262441 */
        .orientation = {(-0x1.96e61p-2f), (-0x1.e427c4p-4f), 0x1.ab65aap-1f, 0x1.730f76p-2f}, /* -0.397362, -0.118202, 0.83476, 0.362364 */
        .linear_velocity = {0x1.0f09dp-2f, 0x1.0300ecp-4f, (-0x1.83feeap-2f)}, /* 0.264686, 0.0632333, -0.378902 */
        .angular_velocity = {0x1.6b89f6p-2f, (-0x1.86d876p+0f), (-0x1.1d8afp+0f)}, /* 0.355018, -1.52674, -1.1154 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.dc9816p-2f, (-0x1.e85c38p-9f), (-0x1.102b1p-2f)}, /* 0.465424, -0.00372589, -0.265789 */
        .orientation = {(-0x1.8d0176p-2f), (-0x1.03cacp-3f), 0x1.ac17fcp-1f, 0x1.778b0cp-2f}, /* -0.387701, -0.126852, 0.83612, 0.366741 */
        .linear_velocity = {0x1.437556p-3f, 0x1.8ed53ap-4f, (-0x1.8c6202p-2f)}, /* 0.157939, 0.0973713, -0.387093 */
        .angular_velocity = {0x1.d2c66p-1f, (-0x1.1565f2p+1f), (-0x1.2e1848p+0f)}, /* 0.91167, -2.16717, -1.18006 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.dd2ea4p-2f, (-0x1.b9207ep-9f), (-0x1.0dfb48p-2f)}, /* 0.465998, -0.00336553, -0.263654 */
        .orientation = {(-0x1.7f35aep-2f), (-0x1.0304bp-3f), 0x1.ae86c4p-1f, 0x1.7ade72p-2f}, /* -0.374228, -0.126474, 0.840872, 0.369989 */
        .linear_velocity = {0x1.b53dd4p-5f, 0x1.c8141ap-4f, (-0x1.8bd99p-2f)}, /* 0.0533742, 0.111347, -0.386572 */
        .angular_velocity = {0x1.63feb8p+0f, (-0x1.56a42ep+1f), (-0x1.35499ep+0f)}, /* 1.39061, -2.67689, -1.20815 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.e2e6ecp-2f, (-0x1.59de82p-8f), (-0x1.169854p-2f)}, /* 0.471584, -0.00527754, -0.272065 */
        .orientation = {(-0x1.70fd8cp-2f), (-0x1.04acc4p-3f), 0x1.afd4fcp-1f, 0x1.82ad4p-2f}, /* -0.360342, -0.127283, 0.843422, 0.377614 */
        .linear_velocity = {(-0x1.543f3ap-5f), 0x1.0ca59p-3f, (-0x1.a30056p-2f)}, /* -0.0415341, 0.131175, -0.409181 */
        .angular_velocity = {0x1.e45f1ap+0f, (-0x1.98f2e2p+1f), (-0x1.387b9ap+0f)}, /* 1.89208, -3.19491, -1.22064 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.e232acp-2f, (-0x1.e235ep-10f), (-0x1.158f5ap-2f)}, /* 0.470896, -0.00183949, -0.271055 */
        .orientation = {(-0x1.5d3c9ep-2f), (-0x1.09fe44p-3f), 0x1.b1b24cp-1f, 0x1.8baa46p-2f}, /* -0.341052, -0.12988, 0.847063, 0.386392 */
        .linear_velocity = {(-0x1.13c9bap-3f), 0x1.12d296p-3f, (-0x1.96a5c8p-2f)}, /* -0.134662, 0.134191, -0.397117 */
        .angular_velocity = {0x1.29e37p+1f, (-0x1.ce39d4p+1f), (-0x1.3906dep+0f)}, /* 2.32725, -3.61114, -1.22276 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d813fep-2f, 0x1.ed1388p-10f, (-0x1.1d53bcp-2f)}, /* 0.461014, 0.00188094, -0.27864 */
        .orientation = {(-0x1.41618ep-2f), (-0x1.037994p-3f), 0x1.b6a6bcp-1f, 0x1.8e7eccp-2f}, /* -0.313849, -0.126697, 0.856741, 0.389156 */
        .linear_velocity = {(-0x1.d5be74p-3f), 0x1.223e7ap-3f, (-0x1.a35e3cp-2f)}, /* -0.229367, 0.141721, -0.409539 */
        .angular_velocity = {0x1.5615a4p+1f, (-0x1.000ac8p+2f), (-0x1.4116p+0f)}, /* 2.67254, -4.00066, -1.25424 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.da8282p-2f, 0x1.065e34p-10f, (-0x1.1f55c6p-2f)}, /* 0.463388, 0.00100085, -0.280601 */
        .orientation = {(-0x1.296618p-2f), (-0x1.00ef5ep-3f), 0x1.b8f2dap-1f, 0x1.9749ap-2f}, /* -0.290429, -0.125457, 0.861228, 0.397742 */
        .linear_velocity = {(-0x1.4aec1ep-2f), 0x1.173498p-3f, (-0x1.793f96p-2f)}, /* -0.323166, 0.136331, -0.368407 */
        .angular_velocity = {0x1.7d87ep+1f, (-0x1.0c6ebep+2f), (-0x1.45fa7p+0f)}, /* 2.98071, -4.19426, -1.27335 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d2a81cp-2f, 0x1.d54682p-9f, (-0x1.246f1ep-2f)}, /* 0.455719, 0.00358029, -0.28558 */
        .orientation = {(-0x1.0e86cap-2f), (-0x1.01438p-3f), 0x1.bb132ep-1f, 0x1.a0a24p-2f}, /* -0.264186, -0.125617, 0.865381, 0.406869 */
        .linear_velocity = {(-0x1.9e12f4p-2f), 0x1.5e7726p-3f, (-0x1.78fdbcp-2f)}, /* -0.404369, 0.171126, -0.368155 */
        .angular_velocity = {0x1.97eb96p+1f, (-0x1.190d62p+2f), (-0x1.63e0eep+0f)}, /* 3.18688, -4.39144, -1.39015 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.d04cfap-2f, 0x1.461298p-8f, (-0x1.294b26p-2f)}, /* 0.453419, 0.00497547, -0.290326 */
        .orientation = {(-0x1.eebb4ap-3f), (-0x1.e5fbf6p-4f), 0x1.bde87cp-1f, 0x1.a50e78p-2f}, /* -0.241568, -0.118648, 0.870914, 0.411188 */
        .linear_velocity = {(-0x1.ddbb2cp-2f), 0x1.44a6f6p-3f, (-0x1.69e966p-2f)}, /* -0.466534, 0.158522, -0.353429 */
        .angular_velocity = {0x1.b4c9e4p+1f, (-0x1.1d18f6p+2f), (-0x1.5eda1ap+0f)}, /* 3.41241, -4.45465, -1.37052 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.cb2876p-2f, 0x1.3c5418p-7f, (-0x1.2ad93ap-2f)}, /* 0.448397, 0.00965358, -0.291844 */
        .orientation = {(-0x1.b83ebcp-3f), (-0x1.d265dap-4f), 0x1.c01238p-1f, 0x1.ac5136p-2f}, /* -0.214963, -0.113867, 0.875139, 0.418279 */
        .linear_velocity = {(-0x1.221ep-1f), 0x1.3efd14p-3f, (-0x1.4741bap-2f)}, /* -0.566635, 0.155756, -0.319587 */
        .angular_velocity = {0x1.c90b8ep+1f, (-0x1.19c0d6p+2f), (-0x1.60ebb8p+0f)}, /* 3.57067, -4.40239, -1.3786 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.c6cedp-2f, 0x1.3ec9d8p-7f, (-0x1.305158p-2f)}, /* 0.444148, 0.00972865, -0.297185 */
        .orientation = {(-0x1.77e06ap-3f), (-0x1.cfd9acp-4f), 0x1.c1d20ep-1f, 0x1.b46906p-2f}, /* -0.183534, -0.113245, 0.878556, 0.426182 */
        .linear_velocity = {(-0x1.2dd21ep-1f), 0x1.4d488ep-3f, (-0x1.312228p-2f)}, /* -0.589494, 0.162736, -0.297982 */
        .angular_velocity = {0x1.ca67bap+1f, (-0x1.14c8d8p+2f), (-0x1.6e0b5p+0f)}, /* 3.58129, -4.32476, -1.42986 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.be8ae4p-2f, 0x1.cb42f8p-8f, (-0x1.34ac52p-2f)}, /* 0.436077, 0.00700778, -0.301439 */
        .orientation = {(-0x1.43d098p-3f), (-0x1.bf8ad2p-4f), 0x1.c35a02p-1f, 0x1.b98e06p-2f}, /* -0.158113, -0.109263, 0.881546, 0.431206 */
        .linear_velocity = {(-0x1.56159ep-1f), 0x1.55dcbcp-3f, (-0x1.224e36p-2f)}, /* -0.668134, 0.166925, -0.283501 */
        .angular_velocity = {0x1.cfd80cp+1f, (-0x1.0d9196p+2f), (-0x1.6568c4p+0f)}, /* 3.62378, -4.21201, -1.39613 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.b7f112p-2f, 0x1.182a82p-7f, (-0x1.371702p-2f)}, /* 0.429631, 0.00854999, -0.303799 */
        .orientation = {(-0x1.0c9902p-3f), (-0x1.86ee7ap-4f), 0x1.c3a648p-1f, 0x1.c4cff2p-2f}, /* -0.131151, -0.0954423, 0.882128, 0.442199 */
        .linear_velocity = {(-0x1.69905ep-1f), 0x1.400026p-3f, (-0x1.e7e10ap-3f)}, /* -0.70618, 0.15625, -0.238222 */
        .angular_velocity = {0x1.c9863cp+1f, (-0x1.fccf64p+1f), (-0x1.7413dep+0f)}, /* 3.57441, -3.97508, -1.45343 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.b0c216p-2f, 0x1.551fa6p-7f, (-0x1.38bdf8p-2f)}, /* 0.422615, 0.0104103, -0.305412 */
        .orientation = {(-0x1.bba628p-4f), (-0x1.81eb44p-4f), 0x1.c36d64p-1f, 0x1.cc3d1ap-2f}, /* -0.108313, -0.0942185, 0.881694, 0.449452 */
        .linear_velocity = {(-0x1.7e2acp-1f), 0x1.15d54ap-3f, (-0x1.c68afp-3f)}, /* -0.74642, 0.135661, -0.221945 */
        .angular_velocity = {0x1.ca334cp+1f, (-0x1.e14508p+1f), (-0x1.745c98p+0f)}, /* 3.57969, -3.75992, -1.45454 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.a344e2p-2f, 0x1.2717c4p-6f, (-0x1.38337ap-2f)}, /* 0.409442, 0.018011, -0.304884 */
        .orientation = {(-0x1.4ad7a4p-4f), (-0x1.65685cp-4f), 0x1.c46bap-1f, 0x1.cfb24cp-2f}, /* -0.0807721, -0.0872577, 0.883634, 0.452829 */
        .linear_velocity = {(-0x1.8a46acp-1f), 0x1.3a2e12p-3f, (-0x1.82caf8p-3f)}, /* -0.77007, 0.153408, -0.188864 */
        .angular_velocity = {0x1.ba8552p+1f, (-0x1.b01f4p+1f), (-0x1.7d4302p+0f)}, /* 3.45719, -3.37595, -1.4893 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.9fd1eap-2f, 0x1.97bcaap-7f, (-0x1.3a428ap-2f)}, /* 0.406074, 0.0124431, -0.306894 */
        .orientation = {(-0x1.e268f2p-5f), (-0x1.40a334p-4f), 0x1.c4284p-1f, 0x1.d5d196p-2f}, /* -0.0588879, -0.0782806, 0.88312, 0.458807 */
        .linear_velocity = {(-0x1.98a9ep-1f), 0x1.29aac4p-3f, (-0x1.26ca92p-3f)}, /* -0.798171, 0.145345, -0.143941 */
        .angular_velocity = {0x1.a7e118p+1f, (-0x1.82c6b8p+1f), (-0x1.7a19cp+0f)}, /* 3.31156, -3.02169, -1.47696 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.963c0ep-2f, 0x1.65827cp-7f, (-0x1.3cf92cp-2f)}, /* 0.396713, 0.0109103, -0.309544 */
        .orientation = {(-0x1.230a7cp-5f), (-0x1.19471ap-4f), 0x1.c3452p-1f, 0x1.dd35b2p-2f}, /* -0.0355275, -0.0686713, 0.881387, 0.466025 */
        .linear_velocity = {(-0x1.a88f18p-1f), 0x1.1dd27ep-3f, (-0x1.09408ap-3f)}, /* -0.829217, 0.139562, -0.129518 */
        .angular_velocity = {0x1.8e8e2ap+1f, (-0x1.51ae38p+1f), (-0x1.85a73ap+0f)}, /* 3.11371, -2.63813, -1.52208 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.8ddaacp-2f, 0x1.01ef84p-6f, (-0x1.3c0f5p-2f)}, /* 0.388529, 0.0157431, -0.308652 */
        .orientation = {(-0x1.0deffep-6f), (-0x1.0df774p-4f), 0x1.c239b8p-1f, 0x1.e29f52p-2f}, /* -0.0164757, -0.0659098, 0.879347, 0.471311 */
        .linear_velocity = {(-0x1.b865dp-1f), 0x1.0565a4p-3f, (-0x1.09f6ap-4f)}, /* -0.860152, 0.127635, -0.0649325 */
        .angular_velocity = {0x1.6ffddcp+1f, (-0x1.1a2e84p+1f), (-0x1.85c65ep+0f)}, /* 2.87493, -2.20454, -1.52256 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.8714fcp-2f, 0x1.f196fcp-7f, (-0x1.3e43cep-2f)}, /* 0.381916, 0.0151852, -0.310806 */
        .orientation = {(-0x1.a64d62p-10f), (-0x1.c155c6p-5f), 0x1.c09f6p-1f, 0x1.ea467cp-2f}, /* -0.00161096, -0.0548505, 0.876216, 0.478785 */
        .linear_velocity = {(-0x1.bd2dc4p-1f), 0x1.6d227ep-4f, (-0x1.7ee6e4p-5f)}, /* -0.86949, 0.0891442, -0.046741 */
        .angular_velocity = {0x1.5237ccp+1f, (-0x1.c1e928p+0f), (-0x1.88c5cep+0f)}, /* 2.64233, -1.75746, -1.53427 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.7b7e5p-2f, 0x1.596ebp-6f, (-0x1.3d010ep-2f)}, /* 0.370599, 0.0210835, -0.309574 */
        .orientation = {0x1.65982cp-7f, (-0x1.a175acp-5f), 0x1.bdd872p-1f, 0x1.f49d6ap-2f}, /* 0.0109129, -0.0509594, 0.870792, 0.488882 */
        .linear_velocity = {(-0x1.c3f284p-1f), 0x1.d3ffc4p-4f, (-0x1.234418p-7f)}, /* -0.88271, 0.114258, -0.00888873 */
        .angular_velocity = {0x1.2e08e8p+1f, (-0x1.4a5924p+0f), (-0x1.851d22p+0f)}, /* 2.35965, -1.29042, -1.51998 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.753608p-2f, 0x1.2f4402p-6f, (-0x1.3e24f4p-2f)}, /* 0.364464, 0.0185099, -0.310688 */
        .orientation = {0x1.4baa56p-6f, (-0x1.60be8p-5f), 0x1.bce352p-1f, 0x1.f87b16p-2f}, /* 0.0202432, -0.0430596, 0.868922, 0.492657 */
        .linear_velocity = {(-0x1.b6daa2p-1f), 0x1.49ba5cp-4f, 0x1.68a6cp-5f}, /* -0.857137, 0.0805, 0.0440248 */
        .angular_velocity = {0x1.122d4ap+1f, (-0x1.b4eedap-1f), (-0x1.8dc638p+0f)}, /* 2.14201, -0.853385, -1.55381 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.69e7f2p-2f, 0x1.7e14d8p-6f, (-0x1.3b53b8p-2f)}, /* 0.353424, 0.0233204, -0.307937 */
        .orientation = {0x1.fce618p-6f, (-0x1.384d9p-5f), 0x1.ba6de8p-1f, 0x1.007314p-1f}, /* 0.0310607, -0.0381229, 0.86412, 0.500878 */
        .linear_velocity = {(-0x1.c44788p-1f), 0x1.61158cp-4f, 0x1.06ef7cp-4f}, /* -0.883358, 0.0862022, 0.0641932 */
        .angular_velocity = {0x1.d37ae6p+0f, (-0x1.d50466p-2f), (-0x1.8947d6p+0f)}, /* 1.82609, -0.458025, -1.53625 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.5e8cp-2f, 0x1.6d2378p-6f, (-0x1.3c3f2ap-2f)}, /* 0.342331, 0.0222863, -0.308835 */
        .orientation = {0x1.e3d86ap-6f, (-0x1.cc55eap-6f), 0x1.ba05cap-1f, 0x1.01890cp-1f}, /* 0.0295316, -0.0280967, 0.863325, 0.502999 */
        .linear_velocity = {(-0x1.c3e83cp-1f), 0x1.4e10d8p-4f, 0x1.03a35cp-3f}, /* -0.882631, 0.081559, 0.126776 */
        .angular_velocity = {0x1.9c40a4p+0f, (-0x1.86cc6cp-4f), (-0x1.7bc4dep+0f)}, /* 1.61036, -0.0954098, -1.48347 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.57af66p-2f, 0x1.60ffaap-6f, (-0x1.3cb3eap-2f)}, /* 0.33563, 0.0215453, -0.30928 */
        .orientation = {0x1.244274p-5f, (-0x1.6511a4p-6f), 0x1.b71ae6p-1f, 0x1.066f92p-1f}, /* 0.0356762, -0.0217938, 0.857627, 0.51257 */
        .linear_velocity = {(-0x1.b4f21ep-1f), 0x1.28857ep-4f, 0x1.173102p-3f}, /* -0.85341, 0.0723929, 0.136324 */
        .angular_velocity = {0x1.49c84ap+0f, 0x1.fa447p-3f, (-0x1.79173p+0f)}, /* 1.28821, 0.247201, -1.47301 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.509fc6p-2f, 0x1.8bb956p-6f, (-0x1.3bf134p-2f)}, /* 0.328734, 0.0241531, -0.308537 */
        .orientation = {0x1.3e4228p-5f, (-0x1.7209p-7f), 0x1.b4fe84p-1f, 0x1.09fd98p-1f}, /* 0.0388499, -0.0112926, 0.853504, 0.519513 */
        .linear_velocity = {(-0x1.b7b89ap-1f), 0x1.c93fcap-5f, 0x1.aeb218p-3f}, /* -0.85883, 0.0558165, 0.210301 */
        .angular_velocity = {0x1.11f3b6p+0f, 0x1.08af98p-1f, (-0x1.7ee11cp+0f)}, /* 1.07012, 0.516965, -1.49562 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.46adp-2f, 0x1.79b294p-6f, (-0x1.33ac26p-2f)}, /* 0.319019, 0.0230528, -0.300461 */
        .orientation = {0x1.4c4e88p-5f, (-0x1.0d7316p-7f), 0x1.b33554p-1f, 0x1.0cdd9p-1f}, /* 0.0405648, -0.00822295, 0.850016, 0.525128 */
        .linear_velocity = {(-0x1.bdf1p-1f), 0x1.27777ep-4f, 0x1.018a3ap-2f}, /* -0.870979, 0.0721354, 0.251504 */
        .angular_velocity = {0x1.8c570cp-1f, 0x1.9918cap-1f, (-0x1.7d84b8p+0f)}, /* 0.774102, 0.799017, -1.49031 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.3cd2bap-2f, 0x1.96faaep-6f, (-0x1.323256p-2f)}, /* 0.309398, 0.02484, -0.29902 */
        .orientation = {0x1.0c25cp-5f, (-0x1.0cd4e4p-8f), 0x1.b22e7cp-1f, 0x1.0ed2aep-1f}, /* 0.0327328, -0.00410204, 0.848011, 0.528951 */
        .linear_velocity = {(-0x1.ba7ff4p-1f), 0x1.6c9f6cp-5f, 0x1.1866ecp-2f}, /* -0.864257, 0.0445096, 0.27383 */
        .angular_velocity = {0x1.28fcfap-1f, 0x1.f81b62p-1f, (-0x1.7b944ap+0f)}, /* 0.580055, 0.984584, -1.48273 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.3526a2p-2f, 0x1.8bc93cp-6f, (-0x1.30fb2ap-2f)}, /* 0.301905, 0.0241569, -0.297833 */
        .orientation = {0x1.1299bp-5f, 0x1.346956p-8f, 0x1.b036acp-1f, 0x1.11ecep-1f}, /* 0.0335205, 0.00470599, 0.844167, 0.53501 */
        .linear_velocity = {(-0x1.b3117cp-1f), 0x1.b0ddfp-5f, 0x1.4d55bp-2f}, /* -0.849743, 0.0528402, 0.325522 */
        .angular_velocity = {0x1.7607c2p-2f, 0x1.27a0c8p+0f, (-0x1.71ad48p+0f)}, /* 0.365264, 1.1548, -1.44405 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.2e0ac4p-2f, 0x1.ba809ep-6f, (-0x1.2e975ep-2f)}, /* 0.294963, 0.0270082, -0.295499 */
        .orientation = {0x1.a14a8cp-6f, 0x1.5390f2p-7f, 0x1.ad6824p-1f, 0x1.167cf2p-1f}, /* 0.0254694, 0.0103627, 0.838685, 0.543922 */
        .linear_velocity = {(-0x1.ad296ap-1f), 0x1.9d13a4p-5f, 0x1.85c42ap-2f}, /* -0.838207, 0.0504244, 0.380631 */
        .angular_velocity = {0x1.e673acp-3f, 0x1.45b044p+0f, (-0x1.699b5ep+0f)}, /* 0.237525, 1.27222, -1.41253 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.29f7fp-2f, 0x1.c0eac2p-6f, (-0x1.27f97cp-2f)}, /* 0.290985, 0.0273997, -0.289038 */
        .orientation = {0x1.8aae64p-6f, 0x1.a77d3cp-7f, 0x1.acff7ap-1f, 0x1.171f1ep-1f}, /* 0.0240894, 0.0129239, 0.837887, 0.545159 */
        .linear_velocity = {(-0x1.ac5408p-1f), 0x1.358386p-4f, 0x1.9a20e6p-2f}, /* -0.836579, 0.0755649, 0.400516 */
        .angular_velocity = {0x1.ea8ffep-5f, 0x1.433cf8p+0f, (-0x1.5d2b6ap+0f)}, /* 0.0598831, 1.26265, -1.36394 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.1993e4p-2f, 0x1.b0a8aap-6f, (-0x1.27c4dap-2f)}, /* 0.274978, 0.0264074, -0.288837 */
        .orientation = {0x1.38810ep-6f, 0x1.ce592ap-7f, 0x1.a99cd6p-1f, 0x1.1c5788p-1f}, /* 0.0190737, 0.0141098, 0.831275, 0.555355 */
        .linear_velocity = {(-0x1.a29082p-1f), 0x1.821648p-5f, 0x1.c58428p-2f}, /* -0.817509, 0.0471298, 0.442887 */
        .angular_velocity = {(-0x1.e7e9e2p-5f), 0x1.4357bep+0f, (-0x1.64e8cep+0f)}, /* -0.0595598, 1.26306, -1.39418 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
    {
        .position = {0x1.1542aap-2f, 0x1.c65c4ap-6f, (-0x1.2048b2p-2f)}, /* 0.270762, 0.027732, -0.281527 */
        .orientation = {0x1.df42cp-7f, 0x1.1f3d16p-6f, 0x1.a8c9dap-1f, 0x1.1d973cp-1f}, /* 0.0146259, 0.0175317, 0.829665, 0.557794 */
        .linear_velocity = {(-0x1.ab48d8p-1f), 0x1.1c333p-4f, 0x1.e9b90ap-2f}, /* -0.83454, 0.0693848, 0.478245 */
        .angular_velocity = {(-0x1.221c88p-3f), 0x1.30c88cp+0f, (-0x1.5bf64ep+0f)}, /* -0.141656, 1.19056, -1.35923 */
        .position_setpoint = {0.0f, 0.0f, 0.0f},
        .linear_velocity_setpoint = {0.0f, 0.0f, 0.0f},
    },
};

static const policy_commands recorded_commands[POLICY_GOLDEN_STEPS] = {
    {
        .rotor_speed = {0x1.08456p+10f, 0x1.fe0548p+10f, 0x1.ea1ff6p+10f, 0x1.44a59cp+3f}, /* 1057.08, 2040.08, 1960.5, 10.1452 */
    },
    {
        .rotor_speed = {0x1.744d8cp+10f, 0x1.fe073ap+10f, 0x1.b997d8p+10f, 0x1.c6ddb8p+3f}, /* 1489.21, 2040.11, 1766.37, 14.2146 */
    },
    {
        .rotor_speed = {0x1.bdf0e6p+10f, 0x1.fe151ep+10f, 0x1.9f8742p+10f, 0x1.d3be44p+3f}, /* 1783.76, 2040.33, 1662.11, 14.617 */
    },
    {
        .rotor_speed = {0x1.dcde48p+10f, 0x1.fdc92p+10f, 0x1.af4ec6p+10f, 0x1.870112p+7f}, /* 1907.47, 2039.14, 1725.23, 195.502 */
    },
    {
        .rotor_speed = {0x1.e78eeap+10f, 0x1.eb261ap+10f, 0x1.ecc39cp+10f, 0x1.de2de4p+10f}, /* 1950.23, 1964.6, 1971.06, 1912.72 */
    },
    {
        .rotor_speed = {0x1.f7f69ap+10f, 0x1.f8e4e8p+10f, 0x1.f1f2ep+10f, 0x1.dcb824p+10f}, /* 2015.85, 2019.58, 1991.79, 1906.88 */
    },
    {
        .rotor_speed = {0x1.fb09bp+10f, 0x1.fa6e5cp+10f, 0x1.f27194p+10f, 0x1.debb58p+10f}, /* 2028.15, 2025.72, 1993.77, 1914.93 */
    },
    {
        .rotor_speed = {0x1.fc80dp+10f, 0x1.fa8f18p+10f, 0x1.ef742ep+10f, 0x1.e7888ep+10f}, /* 2034.01, 2026.24, 1981.82, 1950.13 */
    },
    {
        .rotor_speed = {0x1.fd9ea8p+10f, 0x1.f62908p+10f, 0x1.c2a1f6p+10f, 0x1.f28b96p+10f}, /* 2038.48, 2008.64, 1802.53, 1994.18 */
    },
    {
        .rotor_speed = {0x1.fd8944p+10f, 0x1.f71486p+10f, 0x1.d5326ap+10f, 0x1.ecbc3p+10f}, /* 2038.14, 2012.32, 1876.79, 1970.94 */
    },
    {
        .rotor_speed = {0x1.fdd0bap+10f, 0x1.f2ae42p+10f, 0x1.9ef69ep+10f, 0x1.eef802p+10f}, /* 2039.26, 1994.72, 1659.85, 1979.88 */
    },
    {
        .rotor_speed = {0x1.fd6c5ep+10f, 0x1.d39be8p+10f, 0x1.c0680ep+10f, 0x1.f6932ap+10f}, /* 2037.69, 1870.44, 1793.63, 2010.3 */
    },
    {
        .rotor_speed = {0x1.fd9906p+10f, 0x1.b7fa6ep+10f, 0x1.3e04ecp+10f, 0x1.f7c9aep+10f}, /* 2038.39, 1759.91, 1272.08, 2015.15 */
    },
    {
        .rotor_speed = {0x1.f87f3ep+10f, 0x1.17da7ap+9f, 0x1.d8c50ap+10f, 0x1.fd2b7cp+10f}, /* 2017.99, 559.707, 1891.08, 2036.68 */
    },
    {
        .rotor_speed = {0x1.f657e4p+10f, 0x1.089d4ep+10f, 0x1.c7e4b8p+10f, 0x1.fc677p+10f}, /* 2009.37, 1058.46, 1823.57, 2033.62 */
    },
    {
        .rotor_speed = {0x1.f7ac3cp+10f, 0x1.2e45c8p+10f, 0x1.a09262p+10f, 0x1.fb4f44p+10f}, /* 2014.69, 1209.09, 1666.29, 2029.24 */
    },
    {
        .rotor_speed = {0x1.f28f8ep+10f, 0x1.715d2ap+9f, 0x1.ad0a5ep+10f, 0x1.fc42cep+10f}, /* 1994.24, 738.728, 1716.16, 2033.04 */
    },
    {
        .rotor_speed = {0x1.f58376p+10f, 0x1.27dfb2p+10f, 0x1.973e84p+10f, 0x1.f965fep+10f}, /* 2006.05, 1183.5, 1628.98, 2021.59 */
    },
    {
        .rotor_speed = {0x1.eb2fd8p+10f, 0x1.d7a932p+9f, 0x1.db6ba8p+10f, 0x1.fb0522p+10f}, /* 1964.75, 943.322, 1901.68, 2028.08 */
    },
    {
        .rotor_speed = {0x1.f434d2p+10f, 0x1.b9e992p+9f, 0x1.a86be4p+10f, 0x1.fb58b4p+10f}, /* 2000.83, 883.825, 1697.69, 2029.39 */
    },
    {
        .rotor_speed = {0x1.ede632p+10f, 0x1.433b8ep+10f, 0x1.e9f3bp+10f, 0x1.fa0fe8p+10f}, /* 1975.6, 1292.93, 1959.81, 2024.25 */
    },
    {
        .rotor_speed = {0x1.f57572p+10f, 0x1.e3bbp+9f, 0x1.ddac44p+10f, 0x1.fc972cp+10f}, /* 2005.84, 967.461, 1910.69, 2034.36 */
    },
    {
        .rotor_speed = {0x1.f191cp+10f, 0x1.a008dep+9f, 0x1.ceea28p+10f, 0x1.fcee08p+10f}, /* 1990.28, 832.069, 1851.66, 2035.72 */
    },
    {
        .rotor_speed = {0x1.ed7056p+10f, 0x1.4d93aap+10f, 0x1.d7398p+10f, 0x1.fbc23cp+10f}, /* 1973.76, 1334.31, 1884.9, 2031.03 */
    },
    {
        .rotor_speed = {0x1.efc4c4p+10f, 0x1.abcf8cp+10f, 0x1.e2b314p+10f, 0x1.fa052ep+10f}, /* 1983.07, 1711.24, 1930.8, 2024.08 */
    },
    {
        .rotor_speed = {0x1.dc9f82p+10f, 0x1.528b06p+10f, 0x1.f22404p+10f, 0x1.fc8f8p+10f}, /* 1906.49, 1354.17, 1992.56, 2034.24 */
    },
    {
        .rotor_speed = {0x1.e68a8p+10f, 0x1.aae23p+10f, 0x1.ee1a24p+10f, 0x1.fba846p+10f}, /* 1946.16, 1707.53, 1976.41, 2030.63 */
    },
    {
        .rotor_speed = {0x1.e61c9ap+10f, 0x1.d2607ap+10f, 0x1.f43c66p+10f, 0x1.faa018p+10f}, /* 1944.45, 1865.51, 2000.94, 2026.5 */
    },
    {
        .rotor_speed = {0x1.ecef4ap+10f, 0x1.c87f0ap+10f, 0x1.e814f2p+10f, 0x1.fbae8p+10f}, /* 1971.74, 1825.98, 1952.33, 2030.73 */
    },
    {
        .rotor_speed = {0x1.e74d08p+10f, 0x1.ddd6ccp+10f, 0x1.f2f6e2p+10f, 0x1.fb4ef6p+10f}, /* 1949.2, 1911.36, 1995.86, 2029.23 */
    },
    {
        .rotor_speed = {0x1.e97e2p+10f, 0x1.ed792ep+10f, 0x1.f2c59p+10f, 0x1.f955fcp+10f}, /* 1957.97, 1973.89, 1995.09, 2021.34 */
    },
    {
        .rotor_speed = {0x1.e329c4p+10f, 0x1.f057aap+10f, 0x1.ef1874p+10f, 0x1.f74db8p+10f}, /* 1932.65, 1985.37, 1980.38, 2013.21 */
    },
    {
        .rotor_speed = {0x1.ce8d5ap+10f, 0x1.f7b792p+10f, 0x1.f3de22p+10f, 0x1.ea9aa6p+10f}, /* 1850.21, 2014.87, 1999.47, 1962.42 */
    },
    {
        .rotor_speed = {0x1.cbff52p+10f, 0x1.fc2e72p+10f, 0x1.f24514p+10f, 0x1.b9806p+10f}, /* 1839.99, 2032.73, 1993.08, 1766.01 */
    },
    {
        .rotor_speed = {0x1.cc87fcp+10f, 0x1.fc3568p+10f, 0x1.e50216p+10f, 0x1.a7d57ap+10f}, /* 1842.12, 2032.83, 1940.03, 1695.34 */
    },
    {
        .rotor_speed = {0x1.c6120ap+10f, 0x1.fcd9c2p+10f, 0x1.dcb952p+10f, 0x1.736d76p+10f}, /* 1816.28, 2035.4, 1906.9, 1485.71 */
    },
    {
        .rotor_speed = {0x1.acb202p+10f, 0x1.fcd2c2p+10f, 0x1.e31908p+10f, 0x1.66bb88p+10f}, /* 1714.78, 2035.29, 1932.39, 1434.93 */
    },
    {
        .rotor_speed = {0x1.ae5302p+10f, 0x1.fcbf5p+10f, 0x1.dc1636p+10f, 0x1.742a24p+10f}, /* 1721.3, 2034.99, 1904.35, 1488.66 */
    },
    {
        .rotor_speed = {0x1.ac055p+10f, 0x1.fcc53ap+10f, 0x1.d16642p+10f, 0x1.660654p+10f}, /* 1712.08, 2035.08, 1861.6, 1432.1 */
    },
    {
        .rotor_speed = {0x1.a2aabp+10f, 0x1.fcaa04p+10f, 0x1.d320eep+10f, 0x1.7b6118p+10f}, /* 1674.67, 2034.66, 1868.51, 1517.52 */
    },
    {
        .rotor_speed = {0x1.ba2f66p+10f, 0x1.fd230ep+10f, 0x1.c30eecp+10f, 0x1.5a7facp+10f}, /* 1768.74, 2036.55, 1804.23, 1385.99 */
    },
    {
        .rotor_speed = {0x1.ba204ep+10f, 0x1.fc1c74p+10f, 0x1.cb1438p+10f, 0x1.abdd84p+10f}, /* 1768.5, 2032.44, 1836.32, 1711.46 */
    },
    {
        .rotor_speed = {0x1.9924bep+10f, 0x1.fd94d6p+10f, 0x1.e90e3cp+10f, 0x1.2e64ecp+10f}, /* 1636.57, 2038.33, 1956.22, 1209.58 */
    },
    {
        .rotor_speed = {0x1.c42b82p+10f, 0x1.fc71p+10f, 0x1.d6d56p+10f, 0x1.b3c26ap+10f}, /* 1808.68, 2033.77, 1883.33, 1743.04 */
    },
    {
        .rotor_speed = {0x1.de6978p+10f, 0x1.fda788p+10f, 0x1.b9bbf2p+10f, 0x1.44cfbep+10f}, /* 1913.65, 2038.62, 1766.94, 1299.25 */
    },
    {
        .rotor_speed = {0x1.ac2994p+10f, 0x1.fd4126p+10f, 0x1.e0ee22p+10f, 0x1.6d424p+10f}, /* 1712.65, 2037.02, 1923.72, 1461.04 */
    },
    {
        .rotor_speed = {0x1.de3304p+10f, 0x1.fca658p+10f, 0x1.bc3026p+10f, 0x1.b480e8p+10f}, /* 1912.8, 2034.6, 1776.75, 1746.01 */
    },
    {
        .rotor_speed = {0x1.d61168p+10f, 0x1.fd61d2p+10f, 0x1.c73276p+10f, 0x1.71e66p+10f}, /* 1880.27, 2037.53, 1820.79, 1479.6 */
    },
    {
        .rotor_speed = {0x1.d42d9ep+10f, 0x1.fc03eap+10f, 0x1.d9ed9p+10f, 0x1.c43b1ap+10f}, /* 1872.71, 2032.06, 1895.71, 1808.92 */
    },
    {
        .rotor_speed = {0x1.d014dap+10f, 0x1.fc3a5ap+10f, 0x1.d10a9ap+10f, 0x1.c25ebep+10f}, /* 1856.33, 2032.91, 1860.17, 1801.48 */
    },
    {
        .rotor_speed = {0x1.e4b99cp+10f, 0x1.fa7c24p+10f, 0x1.c56642p+10f, 0x1.e1559ep+10f}, /* 1938.9, 2025.94, 1813.6, 1925.34 */
    },
    {
        .rotor_speed = {0x1.ea1a5ep+10f, 0x1.fa85e4p+10f, 0x1.b1470ap+10f, 0x1.e153cp+10f}, /* 1960.41, 2026.09, 1733.11, 1925.31 */
    },
    {
        .rotor_speed = {0x1.e50becp+10f, 0x1.f92f26p+10f, 0x1.c1966ep+10f, 0x1.e5caeep+10f}, /* 1940.19, 2020.74, 1798.35, 1943.17 */
    },
    {
        .rotor_speed = {0x1.e7bf6cp+10f, 0x1.f3e4cep+10f, 0x1.b8ec28p+10f, 0x1.f2d15p+10f}, /* 1950.99, 1999.58, 1763.69, 1995.27 */
    },
    {
        .rotor_speed = {0x1.e858dcp+10f, 0x1.ec5286p+10f, 0x1.a59278p+10f, 0x1.f5f7a2p+10f}, /* 1953.39, 1969.29, 1686.29, 2007.87 */
    },
    {
        .rotor_speed = {0x1.e4d91cp+10f, 0x1.dd7b0ep+10f, 0x1.bae658p+10f, 0x1.f958a8p+10f}, /* 1939.39, 1909.92, 1771.6, 2021.39 */
    },
    {
        .rotor_speed = {0x1.e3551p+10f, 0x1.e1012cp+10f, 0x1.99343ep+10f, 0x1.f6dc96p+10f}, /* 1933.33, 1924.02, 1636.82, 2011.45 */
    },
    {
        .rotor_speed = {0x1.d3fd66p+10f, 0x1.a6198p+10f, 0x1.a5426ep+10f, 0x1.fb317p+10f}, /* 1871.96, 1688.4, 1685.04, 2028.77 */
    },
    {
        .rotor_speed = {0x1.c60a84p+10f, 0x1.9d383ep+10f, 0x1.ad914ap+10f, 0x1.fae872p+10f}, /* 1816.16, 1652.88, 1718.27, 2027.63 */
    },
    {
        .rotor_speed = {0x1.d8438ap+10f, 0x1.bb7822p+10f, 0x1.82c8a2p+10f, 0x1.f7dd34p+10f}, /* 1889.06, 1773.88, 1547.13, 2015.46 */
    },
    {
        .rotor_speed = {0x1.d32c38p+10f, 0x1.9f3452p+10f, 0x1.712e1ap+10f, 0x1.f7cce4p+10f}, /* 1868.69, 1660.82, 1476.72, 2015.2 */
    },
    {
        .rotor_speed = {0x1.bf714ep+10f, 0x1.a15abp+10f, 0x1.a2a3dp+10f, 0x1.f53ea8p+10f}, /* 1789.77, 1669.42, 1674.56, 2004.98 */
    },
    {
        .rotor_speed = {0x1.aa380ep+10f, 0x1.aa1f44p+10f, 0x1.c3266cp+10f, 0x1.f3cb3ap+10f}, /* 1704.88, 1704.49, 1804.6, 1999.18 */
    },
    {
        .rotor_speed = {0x1.cbce8ap+10f, 0x1.9e4d6cp+10f, 0x1.8ff98ap+10f, 0x1.f4709ap+10f}, /* 1839.23, 1657.21, 1599.9, 2001.76 */
    },
};

/* The greater of the worst so far and |found - expected| / (upper - lower); a NaN stays. */
static float worse(float worst, const float *found, const float *expected, const float *lower, const float *upper,
                   uint32_t count)
{
    float result = worst;
    for (uint32_t i = 0; i < count; i++) {
        const float deviation = fabsf(found[i] - expected[i]) / (upper[i] - lower[i]);
        if (!(deviation <= result) && (result == result)) {
            result = deviation;
        }
    }
    return result;
}

float policy_self_test(policy_state *state, policy_arena *arena)
{
    policy_commands commands;
    float worst = 0.0f;
    policy_reset(state);
    for (uint32_t k = 0; k < POLICY_GOLDEN_STEPS; k++) {
        if (policy_step(&policy_recorded_signals[k], state, &commands, arena) != POLICY_OK) {
            worst = INFINITY;
            break;
        }
        worst = worse(worst, commands.rotor_speed, recorded_commands[k].rotor_speed, policy_lower.rotor_speed, policy_upper.rotor_speed, 4u);
    }
    policy_reset(state);
    return worst;
}
