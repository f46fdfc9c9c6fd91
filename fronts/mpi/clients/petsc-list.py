"""The names of those tests of a part of PETSc that use several processes: petsc-list.py DATATEST.PKL PACKAGE.

The file is what PETSc's own configuration found in its sources: folders, their programs, and the tests of each.
What cannot run in this configuration has a reason in SKIP there.
"""

import pickle
import sys

with open(sys.argv[1], "rb") as file:
    folders = pickle.load(file)
for path in sorted(folders):
    folder = path.split("/src/")[1]
    if folder.split("/")[0] != sys.argv[2]:
        continue
    for program, tests in folders[path].items():
        if not program.endswith(".c"):  # the others need compilers that it was configured without
            continue
        for name, test in tests.items():
            runs = isinstance(test, dict) and test.get("isrun") and not test.get("SKIP")
            if runs and test.get("nsize", "1") != "1":
                print(folder.replace("/", "_") + "-" + name.removeprefix("run"))
