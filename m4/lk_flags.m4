# SPDX-License-Identifier: Apache-2.0

# LK_APPEND_C_FLAGS(VARIABLE, FLAGS)
# Append to VARIABLE those of FLAGS that the C compiler knows. -Werror makes
# clang refuse what it would otherwise only complain about.
AC_DEFUN([LK_APPEND_C_FLAGS], [
  lk_saved_CFLAGS=$CFLAGS
  for lk_flag in $2; do
    AC_MSG_CHECKING([whether $CC knows $lk_flag])
    CFLAGS="$lk_saved_CFLAGS -Werror $lk_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
      [AC_MSG_RESULT([yes]); AS_VAR_APPEND([$1], [" $lk_flag"])],
      [AC_MSG_RESULT([no])])
  done
  CFLAGS=$lk_saved_CFLAGS
])

# LK_NEED_C_LINK_FLAGS(FLAGS, WHAT)
# Stop unless programs can be compiled and linked with FLAGS.
AC_DEFUN([LK_NEED_C_LINK_FLAGS], [
  lk_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $1"
  AC_MSG_CHECKING([whether $CC links with $1])
  AC_LINK_IFELSE([m4_default([$3], [AC_LANG_PROGRAM()])],
    [AC_MSG_RESULT([yes])],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$2: this compiler cannot link with $1])])
  CFLAGS=$lk_saved_CFLAGS
])

# LK_FIND_HEADER(HEADER, VARIABLE, FOLDERS, MESSAGE)
# Find a HEADER that stands alone. If the compiler does not search the one of
# FOLDERS that has it, as musl-gcc does not search /usr/include, VARIABLE gets
# the flag that makes it look there after all others. Stop with MESSAGE if there
# is none.
AC_DEFUN([LK_FIND_HEADER], [
  AC_SUBST([$2])
  AC_MSG_CHECKING([for $1])
  lk_saved_CPPFLAGS=$CPPFLAGS
  lk_found=no
  for lk_flag in "" m4_foreach_w([lk_folder], [$3], ["-idirafter lk_folder" ]); do
    CPPFLAGS="$lk_saved_CPPFLAGS $lk_flag"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <$1>]])],
      [lk_found=yes; $2=$lk_flag; break])
  done
  CPPFLAGS=$lk_saved_CPPFLAGS
  AS_IF([test $lk_found = no],
    [AC_MSG_RESULT([no])
     AC_MSG_ERROR([$4])])
  AC_MSG_RESULT([yes${$2:+, with $$2}])
])

# LK_TRY_LINK(WHAT, CFLAGS, LIBS, PROGRAM, IF-YES, IF-NO)
# Whether PROGRAM links. pkg-config may speak of a library that this compiler
# cannot use.
AC_DEFUN([LK_TRY_LINK], [
  AC_MSG_CHECKING([whether $CC links with $1])
  lk_saved_CFLAGS=$CFLAGS lk_saved_LIBS=$LIBS
  CFLAGS="$CFLAGS $2" LIBS="$3 $LIBS"
  AC_LINK_IFELSE([$4], [lk_links=yes], [lk_links=no])
  CFLAGS=$lk_saved_CFLAGS LIBS=$lk_saved_LIBS
  AC_MSG_RESULT([$lk_links])
  AS_IF([test $lk_links = yes], [$5], [$6])
])
