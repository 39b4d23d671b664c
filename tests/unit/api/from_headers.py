#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write tests from the public headers, as C for a unit test to include.

from_headers.py SRCDIR FILE prints FILE, tests/unit/api/sizes_from_headers.h or
another of that form: for `api`, `ev` or `sync`, `sizes` or `constructors`.

sizes: a sized_row for each struct with a size that a function takes, also
    within another struct.
constructors: for each function that makes an object, a `constructor`. Each of
    its mistakes is one wrong argument, or one wrong option of its structs.

`api` is all headers except those of the other two. A new function, struct or
option needs no line here if its type says what a wrong value is: -2, an
enumerator that does not exist, or none. Otherwise this program fails and names
the table that lacks a line.
"""

import glob
import os
import re
import sys

# Functions without a row in `sizes`: an older struct lacks on_event, which they
# need; they need a held lock; a build without OpenSSL has no TLS.
NO_SIZE_ROW = {
    'lk_add_watch', 'lk_sync_add_watch',
    'lk_lock_guarded_multi', 'lk_sync_candidate_guarded_multi',
    'lk_sync_lock_guarded_multi', 'lk_sync_lock_release_wait',
    'lk_sync_lock_verify', 'lk_sync_lock_wait_certain',
    'lk_sync_rwlock_downgrade',
    'lk_tls_check',
}
# Structs that the library makes, that a transport takes, or that are not copied.
NOT_TAKEN = {'lk_sasl_facts', 'lk_transport_type', 'lk_want', 'lk_endpoint',
             'lk_listener'}
# Structs that are refused before there is a log, or whose newer options are.
NO_LOG = '.silent_unset = true, '
SILENT = {
    ('lk_client_new', 'config'): NO_LOG,
    ('lk_client_new', 'hooks'): NO_LOG + '.silent_beyond = true, ',
    ('lk_ev_client_new', 'config'): NO_LOG,
    ('lk_poll_client_new', 'config'): NO_LOG,
    ('lk_sync_client_new', 'config.client'): NO_LOG,
    ('lk_sync_client_new', 'config'): NO_LOG + '.silent_beyond = true, ',
}

# An argument by its name: a valid value, and wrong ones.
ARGUMENTS = {
    'path': ('"/a"', ['"a"', '"/a//b"']),
    'name': ('"m"', ['"a/b"']),
    'text': ('"world:anyone:r,auth::cdrwa"',
             ['""', '"world"', '"world:anyone:x"', '"a::r,,b::r"']),
    'out': ('NULL', []),
    'prefix': ('"/"', []),
    'scheme': ('"digest"', []),
    'ttl_ms': ('1', []),
    'acl': ('lk_acl_open()', []),
    'wrong': ('NULL', []),
    'count': ('1', ['0']),
    'lk_multilock_new.count': ('2', ['0']),
    'lk_sync_multilock_new.count': ('2', ['0']),
    'parts': ('two_members',
                ['relative_member', 'no_path_of_member',
                 'one_member_with_two_sides']),
    'ops': ('(const lk_op[]){lk_op_check("/a", -1)}', []),
    'reads': ('(const lk_read[]){lk_read_get("/a")}', []),
    'mem': ('test_mem', []),
    'layout': ('LK_LAYOUT_LATCH', ['(lk_layout)99']),
}
ROOT = '"/"'  # no path of a lock or a group; but each other node has children

# An option by its name: the value of a valid struct, if it needs one; the value
# of a struct with all options that are copied; wrong values. Behind ";" another
# option that is needed for the mistake.
NEEDED, COPIED, WRONG = range(3)
OPTIONS = {
    'now': ('hooks_now', 'hooks_now', ['NULL']),
    'random': ('hooks_random', 'hooks_random', ['NULL']),
    'wake': ('hooks_wake', 'hooks_wake', ['NULL']),
    'hosts': (None, '"127.0.0.1:1"', ['"a:b"']),
    'log': ('sized_log', None, []),
    'mem': (None, 'test_mem', []),
    'send_limit': (None, None, ['SIZE_MAX']),
    'receive_limit': (None, None, ['SIZE_MAX']),
    'outstanding_limit': (None, None, []),
    'data': (None, 'lk_text("data")', []),
    'lk_lock_config.data':
        (None, 'lk_text("data")', ['lk_text(LK_REVOKE_MESSAGE)']),
    'acl': (None, 'lk_acl_open()', []),
    'parent_acl': (None, 'lk_acl_open()', []),
    'max_queue': (None, None, []),
    'prefix': (None, None, ['"p"', '"a/b"']),
    'permits': ('2', '2', ['-1', '0',
                             '1; take = 2; limit_path = NULL']),
    'limit_path': (None, '"/limit"', ['"b"']),
    'unused': (None, None, []),
    'max_pause_ms': (None, None, ['-1', '3600001', '99; pause_ms = 100']),
    'joining': ('"server.4=h:1:2;3"', None, []),
    'timeout_ms': ('1', '1', []),
    'client': ('&', '&', []),
    'lease': (None, '&', []),
    'mechanism': ('&', '&', []),
    'lk_sasl_mechanism.name': ('"SIZED"', None, []),
    'start': ('(int (*)(void **, const lk_sasl_facts *, const char **))ignore',
              None, []),
    'step': ('(int (*)(void *, lk_bytes, lk_bytes *, const char **))ignore',
             None, []),
    'end': ('(void (*)(void *))ignore', None, []),
}
OPTIONAL_CALLBACKS = {'lk_lock_event_cb', 'lk_sync_lock_event_cb'}
# Functions that do not read an option.
IGNORED = {
    'lk_election_new': 'lock_options.layout',
    'lk_sync_election_new': 'lock_options.layout',
}
# Mistakes of one function, beside those of its types and names.
MISTAKES = {
    'lk_client_new': ['config = NULL;', 'hooks = NULL;'],
    'lk_ev_client_new': ['config = NULL;'],
    'lk_poll_client_new': ['config = NULL;'],
    'lk_semaphore_new': ['options = NULL;'],
    'lk_sync_semaphore_new': ['options = NULL;'],
    'lk_single_new': ['config_options.layout = LK_LAYOUT_KAZOO;'],
    'lk_sync_single_new': ['config_options.layout = LK_LAYOUT_KAZOO;'],
}
# The callback of a blocking lock is an argument of its constructor.
for constructor in ('lk_sync_lock_new', 'lk_sync_rwlock_new',
                    'lk_sync_semaphore_new', 'lk_sync_multilock_new',
                    'lk_sync_single_new'):
    MISTAKES.setdefault(constructor, []).append(
        'config_options.on_event = (lk_lock_event_cb)ignore;')
# How an object is freed that has no function of its name.
FREE = {'lk_acls': 'lk_acl_free(%s, test_mem)'}


class Missing(Exception):
    """What this program lacks."""


# ---- the headers ------------------------------------------------------------

def read_headers(srcdir):
    """All structs with a size as {name: [(type, option)]}, all functions as
    [(header, type of the result, name, [(type, parameter)])], and all enums."""
    structs, functions, enums = {}, [], set()
    for path in sorted(glob.glob(os.path.join(srcdir, 'include/latchkey/*.h'))):
        with open(path, encoding='utf-8') as file:
            text = re.sub(r'/\*.*?\*/', '', file.read(), flags=re.S)
        text = ' '.join(text.split())
        header = os.path.basename(path)
        enums.update(re.findall(r'typedef enum (\w+) \{', text))
        for name, body in re.findall(r'typedef struct (\w+) \{(.*?)\} \1;',
                                     text):
            if body.startswith(' size_t size;'):
                structs[name] = [declared(d) for d in body.split(';')[1:-1]]
        found = re.findall(r'LK_API ([\w ]+?[ *]+)(lk_\w+)\(([^)]*)\)', text)
        if len(found) != len(re.findall(r'LK_API (?!extern)[a-z]', text)):
            raise Missing('read_headers() does not understand ' + header)
        functions += [(header, result.strip(), name,
                       [declared(p) for p in params.split(',') if p != 'void'])
                      for result, name, params in found]
    return structs, functions, enums


def declared(declaration):
    """The type and the name that one declaration gives."""
    declaration = declaration.strip()
    pointer = re.fullmatch(r'(.*)\(\*(\w+)\)(\(.*\))', declaration)
    if pointer:
        return pointer[1] + '(*)' + pointer[3], pointer[2]
    found = re.fullmatch(r'(.*?[ *])(\w+)(\[\d*\])?', declaration)
    return found[1].strip() + (' *' if found[3] else ''), found[2]


def struct_of(kind, structs):
    """The name of the struct with a size to which `kind` points, or None."""
    found = re.fullmatch(r'const (\w+) \*', kind)
    return found[1] if found and found[1] in structs else None


# ---- values -----------------------------------------------------------------

class Writer:
    """The C for the functions of one program."""

    def __init__(self, structs, enums, which):
        self.structs, self.enums = structs, enums
        self.which = which  # NEEDED or COPIED: the values of the structs

    def option(self, struct, kind, name):
        """The row of OPTIONS for an option."""
        row = OPTIONS.get('%s.%s' % (struct, name), OPTIONS.get(name))
        if row is not None:
            return row
        if kind in ('int32_t', 'int64_t'):
            return None, None, ['-2']
        if kind in self.enums:
            return None, None, ['(%s)99' % kind]
        if kind.endswith('*') and kind != 'const char *':
            return None, None, []
        if kind == 'bool' or '(*)' in kind or kind.endswith('_cb'):
            return None, None, []
        if self.which == NEEDED:
            return None, None, []
        raise Missing('OPTIONS has no line for %s.%s, a %s' %
                      (struct, name, kind))

    def argument(self, function, kind, name):
        """A valid argument, and wrong ones."""
        row = ARGUMENTS.get('%s.%s' % (function, name), ARGUMENTS.get(name))
        if row is not None:
            wrong = row[1]
            if name == 'path' and function.endswith('_new'):
                wrong = wrong + [ROOT]
            return row[0], wrong
        thing = (re.fullmatch(r'(?:struct |lk_sync_|lk_)(\w+) \*', kind) or
                 re.fullmatch(r'const lk_((?:rw)?lock) \*', kind))
        if thing:
            blocking = kind.startswith('lk_sync_')
            return 'test_' + thing[1], ['NULL'] if blocking else []
        if kind.endswith('_cb'):
            if name.startswith('on_') and kind not in OPTIONAL_CALLBACKS:
                return '(%s)ignore' % kind, ['NULL']
            return 'NULL', []
        if kind in ('int', 'int32_t', 'int64_t', 'uint64_t', 'size_t', 'bool'):
            return '0', []
        if kind in self.enums:
            return '(%s)0' % kind, ['(%s)99' % kind]
        if kind == 'lk_bytes':
            return 'lk_text("x")', []
        if kind.endswith('*'):
            return 'NULL', []
        raise Missing('ARGUMENTS has no line for %s of %s, a %s' %
                      (name, function, kind))

    def struct(self, struct, variable, place=()):
        """Declare a valid struct, and those to which it points; `given` stands
        at `place`, the names of options. Returns the lines, and the wrong
        options as assignments."""
        before, values, wrong = [], ['.size = sizeof %s' % variable], []
        for kind, name in self.structs[struct]:
            row = self.option(struct, kind, name)
            value = row[self.which]
            inner_place = place[1:] if list(place[:1]) == [name] else None
            if inner_place == []:
                value = 'given'
            elif inner_place or value == '&':
                inner = '%s_%s' % (variable, name)
                lines, inner_wrong = self.struct(struct_of(kind, self.structs),
                                                 inner, inner_place or ())
                before += lines
                wrong += inner_wrong
                value = '&' + inner
            if value is not None:
                values.append('.%s = %s' % (name, value))
            wrong += [' '.join('%s.%s;' % (variable, a.strip())
                               for a in ('%s = %s' % (name, w)).split(';'))
                      for w in row[WRONG]]
        line = '  %s %s = {%s};' % (struct, variable, ', '.join(values))
        return before + [line], ['%s.size = 0;' % variable] + wrong

    def declare_arguments(self, function, params, place=('',)):
        """Declare a variable for each parameter, with a valid value; `given`
        stands at `place`, a parameter and the names of options. Returns the
        lines, and the mistakes as assignments."""
        lines, wrong = [], []
        for kind, name in params:
            struct = struct_of(kind, self.structs)
            if place == [name]:
                value = 'given'
            elif struct is None:
                value, values = self.argument(function, kind, name)
                wrong += ['%s = %s;' % (name, w) for w in values]
            else:
                value = '&%s_options' % name
                before, values = self.struct(
                    struct, name + '_options',
                    place[1:] if place[0] == name else ())
                lines += before
                wrong += [w for w in values
                          if w.split(' =')[0] != IGNORED.get(function)]
            lines.append('  %s%s = %s;' %
                         (kind if kind.endswith('*') else kind + ' ', name,
                          value))
        return lines, wrong + MISTAKES.get(function, [])

    def places(self, kind, name):
        """Where a parameter takes structs with a size: its own, and pointers to
        others in it, as (struct, path)."""
        struct = struct_of(kind, self.structs)
        if struct is None:
            return
        yield struct, name
        for inner_kind, inner_name in self.structs[struct]:
            for place, path in self.places(inner_kind, inner_name):
                yield place, '%s.%s' % (name, path)


def made_type(function):
    """The type of the object that a function makes, or None."""
    _, result, name, params = function
    found = params and re.fullmatch(r'(lk_\w+) \*\*', params[0][0])
    # A blocking call for a node gives a result, which is no object.
    if not found or result != 'int' or found[1] == 'lk_sync_result':
        return None
    return found[1]


def free(made, variable):
    return FREE.get(made, made + '_free(%s)') % variable


# ---- sizes ------------------------------------------------------------------

def write_pass(writer, function, path):
    """A function that passes a struct in one place. Returns its name."""
    _, _, name, params = function
    label = 'pass_%s_%s' % (name, path.replace('.', '_'))
    made = made_type(function)
    params = params[1:] if made else params
    lines, _ = writer.declare_arguments(name, params, path.split('.'))
    if ('const lk_sync_call *', 'call') in params and path != 'call':
        lines.append('  call_options.timeout_ms = sized_timeout_ms;')
    arguments = ', '.join(p for _, p in params)
    print('static int %s(const void *given)\n{' % label)
    if not made:
        print('\n'.join(lines))
        print('  return %s(%s);\n}\n' % (name, arguments))
        return label
    print('  %s *made = NULL;' % made)
    print('\n'.join(lines))
    print('  int err = %s(&made, %s);\n' % (name, arguments))
    print('  ck_assert((err == 0) == (made != NULL));')
    print('  %s;\n  return err;\n}\n' % free(made, 'made'))
    return label


def write_sizes(structs, functions, enums):
    writer = Writer(structs, enums, NEEDED)
    rows = [(struct, function[2], path, write_pass(writer, function, path))
            for function in functions if function[2] not in NO_SIZE_ROW
            for kind, parameter in function[3]
            for struct, path in writer.places(kind, parameter)]
    for struct in sorted({row[0] for row in rows}):
        lines, _ = writer.struct(struct, 'valid_' + struct)
        print('\n'.join('static ' + line.strip() for line in lines))
    print('\nstatic const sized_row sized_rows[] = {')
    for struct, name, path, label in rows:
        print('  SIZED_ROW(%s, valid_%s, .name = "%s, %s", %s.hand_in = %s),' %
              (struct, struct, name, path, SILENT.get((name, path), ''), label))
    print('};')


# ---- constructors -----------------------------------------------------------

def write_constructors(structs, functions, enums):
    writer = Writer(structs, enums, COPIED)
    rows = []
    for function in functions:
        made, name = made_type(function), function[2]
        if made is None:
            continue
        lines, mistakes = writer.declare_arguments(name, function[3][1:])
        print('static int make_%s(void **out, unsigned mistake)\n{' % name)
        print('  %s *made = *out;' % made)
        print('\n'.join(lines))
        print('  switch (mistake) {')
        for i, mistake in enumerate(mistakes, 1):
            print('  case %d: %s break;' % (i, mistake))
        print('  default: break;\n  }')
        print('  int err = %s(&made, %s);\n' %
              (name, ', '.join(p for _, p in function[3][1:])))
        print('  *out = made;\n  return err;\n}\n')
        print('static void free_%s(void *made)\n{\n  %s;\n}\n' %
              (name, free(made, 'made')))
        rows.append('  {"%s", make_%s, free_%s, %d},' %
                    (name, name, name, len(mistakes)))
    print('static const constructor constructors[] = {')
    print('\n'.join(rows) + '\n};')


# ---- all --------------------------------------------------------------------

def check_each_struct_is_taken(structs, functions, writer):
    taken = {struct for f in functions for kind, name in f[3]
             for struct, _ in writer.places(kind, name)}
    for struct in structs:
        if (struct in taken) == (struct in NOT_TAKEN):
            raise Missing('NOT_TAKEN is wrong about ' + struct)


def main():
    srcdir, file = sys.argv[1:]
    program, what = re.search(r'(\w+)/(\w+)_from_headers\.h$', file).groups()
    print('/* From the public headers, by tests/unit/api/from_headers.py. */\n')
    try:
        structs, functions, enums = read_headers(srcdir)
        own = [f for f in functions
               if program == {'ev.h': 'ev', 'sync.h': 'sync'}.get(f[0], 'api')]
        check_each_struct_is_taken(structs, functions,
                                   Writer(structs, enums, NEEDED))
        if what == 'sizes':
            write_sizes(structs, own, enums)
        else:
            write_constructors(structs, own, enums)
    except Missing as error:
        sys.exit('tests/unit/api/from_headers.py: %s' % error)


if __name__ == '__main__':
    main()
