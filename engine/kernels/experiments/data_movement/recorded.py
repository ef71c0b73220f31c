"""Six small kernels that really compute and record each of their accesses as they go.

An entry of `out` is a byte address, doubled, plus one for a store. Each kernel takes the place in
`out` to go on from and returns the place after its last access; sizes of elements are 8 bytes for
float64 and 4 for float32 and int32, as in the arrays they work on.
"""

from engine.kernels.compiled import checked


@checked
def triad(out, at, x_3N, first, last, factor):
    """x[0] = x[1] + factor · x[2]: 2 loads, 1 store, 2 operations an element."""
    row = x_3N.shape[1] * 8
    for i in range(first, last):
        out[at] = 2 * (row + 8 * i)
        out[at + 1] = 2 * (2 * row + 8 * i)
        x_3N[0, i] = x_3N[1, i] + factor * x_3N[2, i]
        out[at + 2] = 2 * (8 * i) + 1
        at += 3
    return at


@checked
def records(out, at, table_RW, start, count, key, found):
    """Walk `count` linked records of 16 words and hash each word after the link.

    16 loads and 60 operations a record; found[0]: words equal to `key`, found[1]: the hash.
    """
    here, words = start, table_RW.shape[1]
    for _ in range(count):
        base = here * words
        out[at] = 2 * 4 * base
        at += 1
        for w in range(1, words):
            out[at] = 2 * 4 * (base + w)
            at += 1
            found[1] = (found[1] ^ table_RW[here, w]) * 16777619 % 4294967296
            found[0] += table_RW[here, w] == key
        here = table_RW[here, 0]
    return at


@checked
def quantise(out, at, x_N, first, last, passes, levels_2):
    """Lloyd's two-level quantiser of samples first … last: each pass sorts all to the nearer level.

    1 load and 4 operations a sample (compare, select, add, count).
    """
    for _ in range(passes):
        middle = (levels_2[0] + levels_2[1]) / 2
        low, high = 0.0, 0.0
        below, above = 0, 0
        for i in range(first, last):
            out[at] = 2 * 4 * i
            at += 1
            if x_N[i] < middle:
                low += x_N[i]
                below += 1
            else:
                high += x_N[i]
                above += 1
        if below:
            levels_2[0] = low / below
        if above:
            levels_2[1] = high / above
    return at


@checked
def react(out, at, u_TN, task, passes, spread, growth):
    """In-place steps of u' = spread · (u₋ − 2u + u₊) + growth · u(1 − u) on one task's vector.

    3 loads, 1 store and 9 operations an element.
    """
    size = u_TN.shape[1]
    base = task * size * 8
    for _ in range(passes):
        for i in range(1, size - 1):
            place = base + 8 * i
            out[at] = 2 * (place - 8)
            out[at + 1] = 2 * place
            out[at + 2] = 2 * (place + 8)
            out[at + 3] = 2 * place + 1
            at += 4
            u = u_TN[task, i]
            bend = u_TN[task, i - 1] - 2.0 * u + u_TN[task, i + 1]
            u_TN[task, i] = u + spread * bend + growth * u * (1.0 - u)
    return at


@checked
def smooth(out, at, u_TN, task, passes):
    """In-place means of three neighbours on one task's vector.

    3 loads, 1 store and 3 operations an element.
    """
    size = u_TN.shape[1]
    base = task * size * 8
    for _ in range(passes):
        for i in range(1, size - 1):
            place = base + 8 * i
            out[at] = 2 * (place - 8)
            out[at + 1] = 2 * place
            out[at + 2] = 2 * (place + 8)
            out[at + 3] = 2 * place + 1
            at += 4
            total = u_TN[task, i - 1] + u_TN[task, i] + u_TN[task, i + 1]
            u_TN[task, i] = total * (1.0 / 3.0)
    return at


@checked
def series(out, at, x_TN, task, passes, weights_K):
    """x = Σₖ weight[k] · sin(x + k/8), the sine as a polynomial of 8 terms in x², per element.

    1 load of x, K of weights, 1 store; 20 operations a weight. Weights lie behind all x, a copy
    for each task.
    """
    size, terms = x_TN.shape[1], weights_K.shape[0]
    base = task * size * 8
    table = (x_TN.size + task * 64) * 8
    for _ in range(passes):
        for i in range(size):
            out[at] = 2 * (base + 8 * i)
            at += 1
            x, y = x_TN[task, i], 0.0
            for k in range(terms):
                out[at] = 2 * (table + 8 * k)
                at += 1
                z = x + 0.125 * k
                s = z * z
                p = -7.647163731819816e-13
                p = p * s + 1.605904383682161e-10
                p = p * s - 2.505210838544172e-08
                p = p * s + 2.755731922398589e-06
                p = p * s - 1.984126984126984e-04
                p = p * s + 8.333333333333333e-03
                p = p * s - 1.666666666666667e-01
                p = p * s + 1.0
                y += weights_K[k] * (z * p)
            x_TN[task, i] = y
            out[at] = 2 * (base + 8 * i) + 1
            at += 1
    return at
