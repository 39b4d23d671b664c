/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_NODE_DATA_H
#define LK_CLI_NODES_NODE_DATA_H

#include <latchkey/types.h>

#include "cli/output/text.h"

/** Reads the data for a node: `word`, or standard input for "-", or nothing for
    NULL. On false the complaint is printed. */
bool cli_node_data_read(const char *word, cli_text *out);
/** The same for a request: empty data is not ZooKeeper's null. */
lk_bytes cli_node_data_bytes(const cli_text *data);

#endif
