"""Commands whose results have pages."""

from pathlib import Path

#: A machine with elastic data.
TUBES = Path(__file__).parents[2] / "examples" / "elastic" / "gantry_tau.yaml"
#: A small task of synthesis.
QUICK_TASK = Path(__file__).parents[1] / "design" / "quick_task.yaml"

#: Commands whose results have pages, with how many plots and machines in motion these show.
REPORTED = {
    "calibrate five_bar INPUTS/poses.csv --parameters *length* --noise 0.01mm": (3, 1),
    "plan poses linear_delta --count 6 --candidates 40 --parameters tower*.end_stop": (3, 1),
    "plan excitation five_bar --random 4 --starts 0 --harmonics 2": (5, 1),
    f"stiffness {TUBES}": (3, 0),
    f"accuracy thermal {TUBES}": (1, 0),
    f"accuracy compliance {TUBES} 500N": (1, 0),
    f"vibration {TUBES} --count 3 --damping 0.02": (2, 0),
    "design motors five_bar INPUTS/motion.csv": (2, 0),
    "design certify five_bar --ranges x=-0.02:0.02": (0, 0),
    f"design synthesize {QUICK_TASK}": (1, 1),
    "dynamics five_bar --motion INPUTS/motion.csv --joint-forces": (3, 1),
    "simulate five_bar --duration 0.05": (5, 1),
    "simulate four_bar --free --duration 0.05": (5, 1),
    "control follow five_bar --end x=0.02 --controller pd --controller computed-torque --duration 0.05": (
        5,
        1,
    ),
    "drive step dual_motor_axis --step 0.05 --duration 0.2": (9, 0),
    "accuracy ballbar RACKS --radius 0.05 --speed 0.6 --only rigid": (3, 1),
    "accuracy tolerances five_bar --tolerances *=0.1mm --samples 5": (0, 0),
    "design tolerances delta --tolerances *_length=0.1mm --limits z=0.3mm --samples 5": (0, 0),
    f"accuracy compensate {TUBES} --wrench fx=100": (0, 0),
    f"accuracy compensation-table {TUBES} --ranges x=-0.01:0.01 --wrench fx=100": (0, 0),
    "verify five_bar --states 2": (1, 1),
    "workspace five_bar --resolution 0.05": (5, 1),
    "modes five_bar": (1, 1),
    "control collision five_bar --end x=0.02 --duration 0.1 --wrench fx=40 --machines 4": (2, 0),
    "log drive-stiffness INPUTS/geared_arm.yaml INPUTS/geared_arm.csv": (0, 0),
    "log forces five_bar INPUTS/log.csv": (2, 0),
    "model cost five_bar": (1, 1),
    "plan path five_bar --end x=0.02 --intervals 60": (7, 1),
    "plan transfer five_bar --end x=0.02 --intervals 12": (7, 1),
    "plan cycle five_bar INPUTS/cycle.yaml --intervals 24": (5, 1),
    "study run INPUTS/study.yaml --out INPUTS/parts": (0, 0),
    "identify five_bar INPUTS/log.csv --folded INPUTS/folded": (0, 0),
}
