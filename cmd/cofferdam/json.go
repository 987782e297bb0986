package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// writeJSON writes v indented, safe for a terminal.
func writeJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, printableJSON(data))
	return err
}

// writeJSONLine writes v on one line, safe for a terminal.
func writeJSONLine(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, printableJSON(data))
	return err
}
