import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True)
a, b, c, d = train_test_split(X, y, random_state=0)
seen = {}
xgb.train({"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 2, "eta": 0.1}, xgb.DMatrix(a, c), 12,
          evals=[(xgb.DMatrix(a, c), "train"), (xgb.DMatrix(b, d), "validation")], evals_result=seen, verbose_eval=3)
want("auc", round(seen["validation"]["auc"][-1], 5))
