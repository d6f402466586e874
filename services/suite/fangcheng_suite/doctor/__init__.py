"""`fangcheng doctor`: looks a deployment over, and says of what is wrong what to do.

`deployment.py` says what there is to look at, `examining.py` looks at it all, and each of the other
modules at one thing: whether services are reached (`reaching.py`), what they measure of themselves
(`measures.py`), whether they fit together (`agreeing.py`), what they keep (`keeping.py`), and how
they are set (`settings.py`). Nothing that is looked at is changed.
"""
