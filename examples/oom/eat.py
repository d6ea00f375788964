"""Takes memory until it has --mib of it, 16 MiB at a time, and touches it all."""

import argparse
import json

STEP_MIB = 16


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=512)
    args = parser.parse_args()

    held = []
    for taken in range(STEP_MIB, args.mib + STEP_MIB, STEP_MIB):
        held.append(bytearray(b"\1") * (STEP_MIB << 20))
        if taken % 64 == 0:
            print(json.dumps({"taken_mib": taken}), flush=True)


if __name__ == "__main__":
    main()
