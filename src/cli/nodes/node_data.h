/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_CLI_NODES_NODE_DATA_H
#define LK_CLI_NODES_NODE_DATA_H

#include <latchkey/types.h>

#include "cli/output/text.h"

/** What a node is to hold: `word`, or standard input for "-", or nothing for
    NULL. False once it has complained. */
bool cli_node_data_read(const char *word, cli_text *out);
/** The same as a request takes it: empty, not ZooKeeper's null. */
lk_bytes cli_node_data_bytes(const cli_text *data);

#endif
