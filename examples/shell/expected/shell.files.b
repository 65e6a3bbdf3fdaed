ONE
TWO
three