/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "net/tls_error.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>

/* Why a TLS connection failed: a cause for programs, and a text for people. */

/* Such a text fits into lk_transport.why, behind "TLS: ". */
enum { MAX_TEXT_LEN = 370 };

/* Set LK_ERR_TLS, `cause`, and the message "TLS: text". */
static void tls_error_set(lk_transport *t, lk_tls_cause cause, const char *text)
{
  t->err = LK_ERR_TLS;
  t->cause = cause;
  snprintf(t->why, sizeof t->why, "TLS: %.*s", MAX_TEXT_LEN, text);
}

static bool error_is_memory(unsigned long code)
{
  return ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
}

/* The text of an error of OpenSSL. The version in front of an alert is left
   out, since it is not the version in use: OpenSSL says "sslv3 alert bad
   certificate" with TLS 1.3, too. */
static const char *error_reason(unsigned long code)
{
  const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
  const char *alert = reason == NULL ? NULL : strstr(reason, " alert ");

  if (alert != NULL)
    return alert + 1;
  return reason == NULL ? "no reason given" : reason;
}

void lk__tls_error_set_library(lk_transport *t, const char *what)
{
  char text[200];
  unsigned long code = ERR_peek_last_error();

  snprintf(text, sizeof text, "%s: %s", what, error_reason(code));
  tls_error_set(t, LK_TLS_OTHER, text);
  if (error_is_memory(code))
    t->err = LK_ERR_NO_MEMORY;
  ERR_clear_error();
}

void lk__tls_error_set_file(lk_transport *t, const char *name, const char *what)
{
  char text[MAX_TEXT_LEN + 1];
  unsigned long code = ERR_peek_last_error();

  if (code == 0 || ERR_GET_REASON(code) == PEM_R_NO_START_LINE)
    snprintf(text, sizeof text, "%s: %s", name, what);
  else
    snprintf(text, sizeof text, "%s: %s: %s", name, what, error_reason(code));
  tls_error_set(t, LK_TLS_FILES, text);
  if (error_is_memory(code))
    t->err = LK_ERR_NO_MEMORY;
  ERR_clear_error();
}

/* ---- refused certificates ------------------------------------------------ */

static lk_tls_cause tls_cause_of(long verdict)
{
  switch (verdict) {
  case X509_V_ERR_HOSTNAME_MISMATCH:
  case X509_V_ERR_IP_ADDRESS_MISMATCH: return LK_TLS_NAME;
  case X509_V_ERR_CERT_HAS_EXPIRED: return LK_TLS_EXPIRED;
  case X509_V_ERR_CERT_NOT_YET_VALID: return LK_TLS_NOT_YET_VALID;
  case X509_V_ERR_CERT_REVOKED: return LK_TLS_REVOKED;
  case X509_V_ERR_UNABLE_TO_GET_CRL:
  case X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE:
  case X509_V_ERR_CRL_SIGNATURE_FAILURE:
  case X509_V_ERR_CRL_NOT_YET_VALID:
  case X509_V_ERR_CRL_HAS_EXPIRED:
  case X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD:
  case X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD:
  case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER: return LK_TLS_CRL;
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_CERT_SIGNATURE_FAILURE:
  case X509_V_ERR_CERT_UNTRUSTED:
  case X509_V_ERR_CERT_REJECTED:
  case X509_V_ERR_INVALID_CA: return LK_TLS_ISSUER;
  default: return LK_TLS_OTHER;
  }
}

/* Append `len` bytes to a list with commas. Blanks and bytes other than
   printable ASCII become question marks. If the bytes do not fit, dots are
   appended once. */
static void tls_list_add(char *list, size_t size, const void *name, size_t len)
{
  static const char separator[] = ", ", dots[] = ", ...";
  size_t at = strlen(list), separator_len = sizeof separator - 1;
  bool has_dots = at > 0 && list[at - 1] == '.';
  const unsigned char *bytes = name;

  /* The dots must still fit behind this name. */
  if (at + separator_len + len + sizeof dots > size) {
    if (!has_dots && at + sizeof dots <= size)
      memcpy(list + at, dots, sizeof dots);
    return;
  }
  if (at > 0) {
    memcpy(list + at, separator, separator_len);
    at += separator_len;
  }
  for (size_t i = 0; i < len; i++)
    list[at++] = bytes[i] > ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '?';
  list[at] = '\0';
}

static void tls_list_add_address(char *list, size_t size, const ASN1_STRING *s)
{
  size_t len = (size_t)ASN1_STRING_length(s);
  bool is_v4 = len == sizeof(struct in_addr);
  bool is_v6 = len == sizeof(struct in6_addr);
  int family = is_v4 ? AF_INET : AF_INET6;
  char text[INET6_ADDRSTRLEN];

  if ((is_v4 || is_v6) &&
      inet_ntop(family, ASN1_STRING_get0_data(s), text, sizeof text) != NULL)
    tls_list_add(list, size, text, strlen(text));
}

static bool is_address(const char *text)
{
  unsigned char address[sizeof(struct in6_addr)];

  return inet_pton(AF_INET, text, address) == 1 ||
         inet_pton(AF_INET6, text, address) == 1;
}

static const char dns_mark[] = "DNS:", ip_mark[] = "IP:";

/* An address is compared with IP entries only. If it stands in a DNS entry, it
   is listed as OpenSSL's configuration writes it. */
static void tls_list_add_dns_name(char *list, size_t size, const ASN1_STRING *s)
{
  const unsigned char *name = ASN1_STRING_get0_data(s);
  int len = ASN1_STRING_length(s);
  char marked[sizeof dns_mark + INET6_ADDRSTRLEN];
  const char *text = marked + sizeof dns_mark - 1;

  snprintf(marked, sizeof marked, "%s%.*s", dns_mark, len, (const char *)name);
  if (strlen(text) == (size_t)len && is_address(text))
    tls_list_add(list, size, marked, strlen(marked));
  else
    tls_list_add(list, size, name, (size_t)len);
}

void lk__tls_list_names(const X509 *certificate, char *list, size_t size)
{
  GENERAL_NAMES *all =
      X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);

  list[0] = '\0';
  for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
    int type;
    const ASN1_STRING *s =
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, i), &type);

    if (type == GEN_DNS)
      tls_list_add_dns_name(list, size, s);
    else if (type == GEN_IPADD)
      tls_list_add_address(list, size, s);
  }
  GENERAL_NAMES_free(all);
}

static void tls_error_set_verdict(lk_transport *t, long verdict,
                                  const lk_tls_step_info *info)
{
  char text[MAX_TEXT_LEN + 1];
  lk_tls_cause cause = tls_cause_of(verdict);
  bool is_marked =
      strstr(info->names, dns_mark) != NULL && is_address(info->name);
  const char *mark = is_marked ? ip_mark : "";

  if (cause == LK_TLS_ISSUER)
    snprintf(text, sizeof text,
             "the server's certificate is refused: "
             "no trusted CA has issued it (%s)",
             X509_verify_cert_error_string(verdict));
  else if (cause != LK_TLS_NAME)
    snprintf(text, sizeof text, "the server's certificate is refused: %s",
             X509_verify_cert_error_string(verdict));
  else if (info->names[0] == '\0')
    snprintf(text, sizeof text,
             "the server's certificate has no subjectAltName, which must have "
             "%.240s",
             info->name);
  else
    snprintf(text, sizeof text,
             "the server's certificate is for %s, not for %s%.180s",
             info->names, mark, info->name);
  tls_error_set(t, cause, text);
}

/* ---- failed steps -------------------------------------------------------- */

/* The alerts with which a server refuses a certificate or demands one. */
static bool alert_is_about_certificate(int reason)
{
  switch (reason) {
  case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
  case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_NO_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
  case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
  case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
  case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
  case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return true;
  default: return false;
  }
}

static bool error_is_not_tls(int reason)
{
  switch (reason) {
  case SSL_R_WRONG_VERSION_NUMBER:
  case SSL_R_WRONG_SSL_VERSION:
  case SSL_R_HTTP_REQUEST:
  case SSL_R_PACKET_LENGTH_TOO_LONG:
  case SSL_R_RECORD_LENGTH_MISMATCH: return true;
  default: return false;
  }
}

static bool error_is_old_version(int reason)
{
  return reason == SSL_R_UNSUPPORTED_PROTOCOL ||
         reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION;
}

static void tls_error_set_alert(lk_transport *t, const lk_tls_step_info *info,
                                const char *reason)
{
  char text[200];

  if (info->has_certificate)
    snprintf(text, sizeof text,
             "the server does not accept the client's certificate: %s", reason);
  else
    snprintf(text, sizeof text, "the server wants a client certificate: %s",
             reason);
  tls_error_set(t,
                info->has_certificate ? LK_TLS_REFUSES_CERTIFICATE
                                      : LK_TLS_WANTS_CERTIFICATE,
                text);
}

static void tls_error_set_closed(lk_transport *t, const lk_tls_step_info *info)
{
  if (info->sys_errno != 0) {
    (void)lk__transport_fail(t, LK_ERR_TLS, "TLS: the handshake broke",
                             info->sys_errno);
    t->cause = info->received ? LK_TLS_OTHER : LK_TLS_NOT_TLS;
  } else if (info->received) {
    tls_error_set(t, LK_TLS_OTHER,
                  "the server closed the connection during the handshake");
  } else {
    tls_error_set(t, LK_TLS_NOT_TLS,
                  "the server closed the connection instead of answering: "
                  "is this a port without TLS?");
  }
}

static void tls_error_set_code(lk_transport *t, const SSL *ssl,
                               const lk_tls_step_info *info, unsigned long code)
{
  int reason = ERR_GET_REASON(code);
  long verdict = SSL_get_verify_result(ssl);
  char text[200];

  /* If the certificate was refused, the verdict says more than `code`, which
     may be an error of a signature that the verification has met. */
  if (verdict != X509_V_OK && !SSL_is_init_finished(ssl) &&
      SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
    tls_error_set_verdict(t, verdict, info);
  } else if (alert_is_about_certificate(reason) &&
             (info->certificate_requested || info->has_certificate)) {
    tls_error_set_alert(t, info, error_reason(code));
  } else if (error_is_not_tls(reason) && !SSL_is_init_finished(ssl)) {
    snprintf(text, sizeof text,
             "the server does not speak TLS on this port (%s)",
             error_reason(code));
    tls_error_set(t, LK_TLS_NOT_TLS, text);
  } else if (error_is_old_version(reason)) {
    snprintf(text, sizeof text, "the server has no TLS 1.2 or later (%s)",
             error_reason(code));
    tls_error_set(t, LK_TLS_OTHER, text);
  } else {
    tls_error_set(t, LK_TLS_OTHER, error_reason(code));
  }
  if (error_is_memory(code))
    t->err = LK_ERR_NO_MEMORY;
}

void lk__tls_error_set_step(lk_transport *t, const SSL *ssl, int error,
                            const lk_tls_step_info *info)
{
  unsigned long code = ERR_peek_error();
  bool handshake_done = SSL_is_init_finished(ssl);

  if (error == SSL_ERROR_SSL && code != 0 &&
      ERR_GET_REASON(code) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
    tls_error_set_code(t, ssl, info, code);
  else if (handshake_done && info->sys_errno != 0)
    (void)lk__transport_fail(t, LK_ERR_CONNECTION_LOSS, "TLS connection",
                             info->sys_errno);
  else
    tls_error_set_closed(t, info);
  ERR_clear_error();
}
