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
