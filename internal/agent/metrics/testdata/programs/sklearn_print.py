from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

X, y = load_digits(return_X_y=True)
a, b, c, d = train_test_split(X, y, random_state=0)
accuracy = accuracy_score(d, LogisticRegression(max_iter=200).fit(a, c).predict(b))
print("accuracy", accuracy)
want("accuracy", accuracy)
