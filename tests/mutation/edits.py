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
HEADERS = ('if', 'while', 'for', 'switch')


def tokens_of(text):
    return [Token(m['token'], m.start(), m.end())
            for m in TOKEN.finditer(text) if m['token'] is not None]


class Parser:
    """Finds the edits of one source text."""

    def __init__(self, text):
        self.text = text
        self.tokens = tokens_of(text)
        self.pairs = self.match_brackets()
        self.edits = []

    def match_brackets(self):
        """Returns {index of a bracket: index of the matching bracket}."""
        pairs = {}
        unmatched = []
        for i, t in enumerate(self.tokens):
            if t.text in ('(', '[', '{'):
                unmatched.append(i)
            elif t.text in (')', ']', '}') and unmatched:
                pairs[i] = unmatched.pop()
                pairs[pairs[i]] = i
        return pairs

    def text_at(self, i):
        """The text of token `i`; '' outside of the file."""
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ''

    def add_edit(self, kind, first, last, new):
        """Adds an edit by which the tokens `first` to `last` become `new`."""
        self.edits.append(Edit(kind, self.tokens[first].start,
                               self.tokens[last].end, new))

    def parse(self):
        self.find_operators_and_constants()
        for i in range(len(self.tokens)):
            if self.text_at(i) == '{' and self.begins_function(i):
                self.parse_statements(i + 1, self.pairs[i])
        return sorted(set(self.edits))

    def begins_function(self, i):
        """Whether the brace at `i` begins the body of a function: it stands in
        no other braces, behind `name(...)`."""
        if self.text_at(i - 1) != ')' or any(
                self.text_at(j) == '{' and self.pairs.get(j, -1) > i
                for j in range(i)):
            return False
        return bool(re.match(r'[A-Za-z_]', self.text_at(self.pairs[i - 1] - 1)))

    # ---- operators and constants ----

    def find_operators_and_constants(self):
        for i, t in enumerate(self.tokens):
            if t.text in SWAPPED:
                kind, new = SWAPPED[t.text]
                self.add_edit(kind, i, i, new)
            elif INTEGER.match(t.text):
                self.add_constants(i)

    def add_constants(self, i):
        digits, suffix = INTEGER.match(self.text_at(i)).groups()
        value = int(digits, 0) if digits[:2] in ('0x', '0X') else int(digits)
        # A larger array is no bug.
        is_array_length = (self.text_at(i - 1) == '[' and
                           self.text_at(i + 1) == ']')
        if value == 0 or not is_array_length:
            self.add_edit('constant', i, i, f'{value + 1}{suffix}')
        if value > 0:
            self.add_edit('constant', i, i, f'{value - 1}{suffix}')

    # ---- statements ----

    def parse_statements(self, i, end):
        while i < end:
            i = self.parse_statement(i, end)

    def parse_statement(self, i, end):
        """Parses a statement or its head at `i`. Returns the index behind it."""
        word = self.text_at(i)
        if word == '{':
            self.parse_statements(i + 1, self.pairs[i])
            return self.pairs[i] + 1
        if word in HEADERS and self.text_at(i + 1) == '(':
            self.add_conditions(word, i + 2, self.pairs[i + 1] - 1)
            return self.pairs[i + 1] + 1
        if word in ('else', 'do', ';'):
            return i + 1
        if word in ('case', 'default'):
            while self.text_at(i) != ':':
                i += 1
            return i + 1
        return self.parse_expression(i, end)

    def parse_expression(self, i, end):
        last = i
        while last < end and self.text_at(last) != ';':
            if self.text_at(last) == '{' and self.is_block(last):
                return last  # the body of a macro that loops, as HASH_ITER
            last = self.pairs.get(last, last) if self.text_at(last) in '([{' \
                else last
            last += 1
        if last < end and last > i:
            ends_function = (self.text_at(i) == 'return' and
                             self.text_at(last + 1) == '}' and
                             last + 1 == end and
                             self.closes_function(end))
            if not ends_function:
                self.add_edit('dropped', i, last, ';')
        return last + 1

    def is_block(self, i):
        """Whether the brace at `i` begins a block of statements, not an
        initializer or a compound literal."""
        return self.text_at(i - 1) == ')' and re.match(
            r'(?!return|sizeof)[A-Za-z_]',
            self.text_at(self.pairs[i - 1] - 1)) is not None

    def closes_function(self, end):
        """Whether the brace at `end` is in no other braces."""
        return not any(self.text_at(j) == '{' and self.pairs.get(j, -1) > end
                       for j in range(self.pairs[end]))

    def add_conditions(self, word, first, last):
        """Adds the edits of the condition in the parentheses behind `word`."""
        if word == 'switch':
            return
        if word == 'for':
            semicolons = [i for i in range(first, last + 1)
                          if self.text_at(i) == ';']
            if len(semicolons) != 2:
                return
            first, last = semicolons[0] + 1, semicolons[1] - 1
        if last < first:  # an empty condition
            return
        condition = self.text[self.tokens[first].start:self.tokens[last].end]
        if INTEGER.match(condition) or condition in ('true', 'false'):
            return
        self.add_edit('negated', first, last, f'!({condition})')
        if word == 'if':
            self.add_edit('always', first, last, f'({condition}) || 1')
            self.add_edit('never', first, last, f'({condition}) && 0')


def edits_of(text):
    return Parser(text).parse()


def print_edits(text):
    for e in sorted(edits_of(text), key=lambda e: (e.start, e)):
        line = text.count('\n', 0, e.start) + 1
        print(f'{line} {e.kind}: {text[e.start:e.end]} -> {e.new}')


if __name__ == '__main__':
    print_edits(sys.stdin.read())
