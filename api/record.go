package api

import "encoding/json"

// Record is a record of the log, as package internal/decide/audit has it.
type Record = json.RawMessage
