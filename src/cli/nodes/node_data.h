/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_NODE_DATA_H
#define LK_CLI_NODES_NODE_DATA_H

#include <latchkey/types.h>

#include "cli/output/text.h"

/** Reads the data for a node into `out`: `word`; standard input if `word` is
    "-"; nothing if `word` is NULL. Returns false after it has printed a
    complaint. */
bool cli_node_data_read(const char *word, cli_text *out);
/** Returns the data for a request. Empty data becomes an empty byte array, not
    ZooKeeper's null. */
lk_bytes cli_node_data_bytes(const cli_text *data);

#endif
