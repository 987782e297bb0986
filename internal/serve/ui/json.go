package ui

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes v indented, safe for a terminal.
func WriteJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, printableJSON(data))
	return err
}

// JSONLine is v on one line, safe for a terminal.
func JSONLine(v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode the answer: %w", err)
	}
	return printableJSON(data), nil
}

// WriteJSONLine writes v on one line, safe for a terminal.
func WriteJSONLine(w io.Writer, v any) error {
	line, err := JSONLine(v)
	if err == nil {
		_, err = fmt.Fprintln(w, line)
	}
	return err
}
