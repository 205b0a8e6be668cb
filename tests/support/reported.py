"""Commands whose results have pages."""

#: Commands whose results have pages, with how many plots and machines in motion these show.
REPORTED = {
    "calibrate five_bar INPUTS/poses.csv --parameters *length* --noise 0.01mm": (3, 1),
    "poses linear_delta --count 6 --candidates 40 --parameters tower*.end_stop": (3, 1),
    "excite five_bar --random 4 --starts 0 --harmonics 2": (5, 1),
    "simulate five_bar --duration 0.05": (5, 1),
    "simulate four_bar --swing --duration 0.05": (5, 1),
    "control five_bar --to x=0.02 --controller pd --controller computed-torque --time 0.05": (5, 1),
    "drive dual_motor_axis --step 0.05 --duration 0.2": (9, 0),
    "ballbar RACKS --radius 0.05 --speed 0.6 --only rigid": (3, 1),
    "verify five_bar --states 2": (1, 1),
    "workspace five_bar --resolution 0.05": (5, 1),
    "modes five_bar": (1, 1),
    "detect-hit five_bar --to x=0.02 --time 0.1 --hit fx=40 --draws 4": (2, 0),
    "forces five_bar INPUTS/log.csv": (2, 0),
    "cost five_bar": (1, 1),
    "fastest five_bar --to x=0.02 --intervals 60": (7, 1),
    "transfer five_bar --to x=0.02 --intervals 12": (7, 1),
    "cycle five_bar INPUTS/cycle.yaml --intervals 24": (5, 1),
    "study INPUTS/study.yaml --out INPUTS/parts": (0, 0),
    "fold five_bar INPUTS/log.csv --folder INPUTS/folded": (0, 0),
}
