# SPDX-License-Identifier: Apache-2.0
"""Small mechanical changes of a C source file, for script/mutants --random.

edits_of(text) lists every change of these kinds:
  a condition of `if`, `while` or `for` is negated; that of an `if` is dropped
  (it is evaluated, and always or never holds); `==` and `!=` are swapped
  a comparison is shifted: `<` and `<=`, `>` and `>=` are swapped
  `&&` and `||` are swapped
  an integer constant is one larger or one smaller
  a statement is dropped: an expression, `return`, `break`, `continue`, `goto`
Comments, strings and preprocessor lines are left alone. The parser knows the
layout of this project's sources, not all of C: a change that does not compile
is the caller's to discard.
"""

import re
import sys
from collections import namedtuple

# Characters `start` to `end` of the text become `new`.
Edit = namedtuple('Edit', 'kind start end new')
Token = namedtuple('Token', 'text start end')

TOKEN = re.compile(r'''
    (?P<skip> \s+ | /\*.*?\*/ | //[^\n]* |
              ^[ \t]*\#(?:[^\n\\]|\\.)*$ ) |
    (?P<token> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [A-Za-z_]\w* |
               [0-9][0-9A-Za-z]*(?:\.[0-9]*f?)? |
               ->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|
               \.\.\.|. )''', re.X | re.S | re.M)
INTEGER = re.compile(r'(0[xX][0-9A-Fa-f]+|[0-9]+)([uUlL]*)$')
SWAPPED = {'<': ('comparison', '<='), '<=': ('comparison', '<'),
           '>': ('comparison', '>='), '>=': ('comparison', '>'),
           '==': ('negated', '!='), '!=': ('negated', '=='),
           '&&': ('connective', '||'), '||': ('connective', '&&')}
JUMPS = ('return', 'break', 'continue', 'goto')
HEADERS = ('if', 'while', 'for', 'switch')


def tokens_of(text):
    return [Token(m['token'], m.start(), m.end())
            for m in TOKEN.finditer(text) if m['token'] is not None]


class Parser:
    """Walks over the tokens once; `blocks` says which braces hold statements."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.pairs = self.match_brackets()
        self.edits = []

    def match_brackets(self):
        """Of each bracket the index of its partner."""
        pairs = {}
        open_ones = []
        for i, t in enumerate(self.tokens):
            if t.text in ('(', '[', '{'):
                open_ones.append(i)
            elif t.text in (')', ']', '}') and open_ones:
                pairs[i] = open_ones.pop()
                pairs[pairs[i]] = i
        return pairs

    def at(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def add(self, kind, first, last, new):
        """The tokens from `first` to `last` become `new`."""
        self.edits.append(Edit(kind, self.tokens[first].start,
                               self.tokens[last].end, new))

    def parse(self):
        self.find_operators_and_constants()
        for i in range(len(self.tokens)):
            if self.at(i) == '{' and self.is_body(i):
                self.parse_statements(i + 1, self.pairs[i])
        return sorted(set(self.edits))

    def is_body(self, i):
        """Of a function: `name(...) {` outside of all others."""
        if self.at(i - 1) != ')' or any(
                self.at(j) == '{' and self.pairs.get(j, -1) > i
                for j in range(i)):
            return False
        return bool(re.match(r'[A-Za-z_]', self.at(self.pairs[i - 1] - 1)))

    # ---- operators and constants ----

    def find_operators_and_constants(self):
        for i, t in enumerate(self.tokens):
            if t.text in SWAPPED:
                kind, new = SWAPPED[t.text]
                self.add(kind, i, i, new)
            elif INTEGER.match(t.text):
                self.add_constants(i)

    def add_constants(self, i):
        digits, suffix = INTEGER.match(self.at(i)).groups()
        value = int(digits, 0) if digits[:2] in ('0x', '0X') else int(digits)
        # An array that is larger than it has to be is no bug.
        is_length = self.at(i - 1) == '[' and self.at(i + 1) == ']'
        if value == 0 or not is_length:
            self.add('constant', i, i, f'{value + 1}{suffix}')
        if value > 0:
            self.add('constant', i, i, f'{value - 1}{suffix}')

    # ---- statements ----

    def parse_statements(self, i, end):
        while i < end:
            i = self.parse_statement(i, end)

    def parse_statement(self, i, end):
        """The index behind it."""
        word = self.at(i)
        if word == '{':
            self.parse_statements(i + 1, self.pairs[i])
            return self.pairs[i] + 1
        if word in HEADERS and self.at(i + 1) == '(':
            self.add_conditions(word, i + 2, self.pairs[i + 1] - 1)
            return self.pairs[i + 1] + 1
        if word in ('else', 'do', ';'):
            return i + 1
        if word in ('case', 'default'):
            while self.at(i) != ':':
                i += 1
            return i + 1
        return self.parse_expression(i, end)

    def parse_expression(self, i, end):
        last = i
        while last < end and self.at(last) != ';':
            if self.at(last) == '{' and self.is_block(last):
                return last  # of a macro that loops, as HASH_ITER
            last = self.pairs.get(last, last) if self.at(last) in '([{' \
                else last
            last += 1
        if last < end and last > i:
            ends_function = (self.at(i) == 'return' and
                             self.at(last + 1) == '}' and last + 1 == end and
                             self.is_outermost(end))
            if not ends_function:
                self.add('dropped', i, last, ';')
        return last + 1

    def is_block(self, i):
        """Not an initializer or a compound literal."""
        return self.at(i - 1) == ')' and re.match(
            r'(?!return|sizeof)[A-Za-z_]',
            self.at(self.pairs[i - 1] - 1)) is not None

    def is_outermost(self, end):
        return not any(self.at(j) == '{' and self.pairs.get(j, -1) > end
                       for j in range(self.pairs[end]))

    def add_conditions(self, word, first, last):
        if word == 'switch':
            return
        if word == 'for':
            parts = [i for i in range(first, last + 1) if self.at(i) == ';']
            if len(parts) != 2:
                return
            first, last = parts[0] + 1, parts[1] - 1
        if last < first:
            return
        old = self.text[self.tokens[first].start:self.tokens[last].end]
        if INTEGER.match(old) or old in ('true', 'false'):
            return
        self.add('negated', first, last, f'!({old})')
        if word == 'if':
            self.add('always', first, last, f'({old}) || 1')
            self.add('never', first, last, f'({old}) && 0')


def edits_of(text):
    return Parser(text).parse()


def print_edits(text):
    for e in sorted(edits_of(text), key=lambda e: (e.start, e)):
        line = text.count('\n', 0, e.start) + 1
        print(f'{line} {e.kind}: {text[e.start:e.end]} -> {e.new}')


if __name__ == '__main__':
    print_edits(sys.stdin.read())
