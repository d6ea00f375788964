import lightgbm as lgb
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

X, y = load_breast_cancer(return_X_y=True)
a, b, c, d = train_test_split(X, y, random_state=0)
seen = {}
lgb.train({"objective": "binary", "metric": "auc", "learning_rate": 0.05}, lgb.Dataset(a, c), 20, valid_sets=[lgb.Dataset(a, c), lgb.Dataset(b, d)],
          valid_names=["training", "valid_0"], callbacks=[lgb.record_evaluation(seen), lgb.log_evaluation(5), lgb.early_stopping(10)])
want("auc", round(seen["valid_0"]["auc"][-1], 6))
