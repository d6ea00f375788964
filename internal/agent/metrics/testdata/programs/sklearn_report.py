from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, classification_report
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

X, y = load_digits(return_X_y=True)
a, b, c, d = train_test_split(X, y, random_state=0)
p = KNeighborsClassifier(30).fit(a, c).predict(b)
print(classification_report(d, p))
want("accuracy", round(accuracy_score(d, p), 2))
