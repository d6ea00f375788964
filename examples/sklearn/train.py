"""Two kinds of scikit-learn models on handwritten digits, each with parameters of its own.

Prints the accuracy of a cross-validation and stores the model.
"""

import argparse

import joblib
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=["forest", "svc"], required=True)
    parser.add_argument("--depth", type=int, default=8, help="of the trees of a forest")
    parser.add_argument("--c", type=float, default=1.0, help="of a support vector machine")
    parser.add_argument("--out", default="/trial/out/model.joblib")
    args = parser.parse_args()

    x, y = load_digits(return_X_y=True)

    if args.model == "forest":
        model = RandomForestClassifier(n_estimators=50, max_depth=args.depth, random_state=7)
    else:
        model = SVC(C=args.c)

    scores = cross_val_score(model, x, y, cv=3)
    print(f"accuracy={scores.mean():.4f} spread={scores.std():.4f}")
    joblib.dump(model.fit(x, y), args.out)


if __name__ == "__main__":
    main()
