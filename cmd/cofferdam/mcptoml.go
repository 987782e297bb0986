package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// editTOML puts a table into a document, or takes it out (nil) with the tables below it, and
// leaves every other byte as it is. A text that can't be changed so is refused.
func editTOML(before []byte, at func(map[string]any) []string, entry any) ([]byte, error) {
	document, err := readTOML(before)
	if err != nil {
		return nil, err
	}
	path := at(document)
	parts, err := tablesBelow(before, path)
	if err != nil {
		return nil, err
	}
	after := before
	for _, part := range slices.Backward(parts) {
		if entry == nil && part.to == len(before) && bytes.HasSuffix(after[:part.from], []byte("\n\n")) {
			part.from-- // the empty line that was put before it
		}
		after = splice(after, change{part.from, part.to, ""})
	}
	if entry != nil {
		table, err := toml.Marshal(entry)
		if err != nil {
			return nil, err
		}
		text := "[" + strings.Join(path, ".") + "]\n" + string(table)
		where := len(after)
		if len(parts) > 0 {
			where = parts[0].from // in the place of the one that was there
			if where < len(after) {
				text += "\n"
			}
		} else if where > 0 {
			text = strings.Repeat("\n", 2-min(1, bytes.Count(after[where-1:], []byte("\n")))) + text
		}
		after = splice(after, change{where, where, text})
	}
	return after, sameButFor(document, after, path, readTOML)
}

func readTOML(text []byte) (map[string]any, error) {
	document := map[string]any{}
	if err := toml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("it is no TOML (%w); add the server by hand", err)
	}
	return document, nil
}

// tablesBelow are the parts of a text, in order, that hold the table of a path and those
// below it, each from its header's line to the next header of another.
func tablesBelow(text []byte, path []string) (parts []change, err error) {
	var p unstable.Parser
	p.Reset(text)
	open := false
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		var names []string
		line := -1
		for key := e.Key(); key.Next(); {
			names = append(names, string(key.Node().Data))
			if line < 0 {
				line = bytes.LastIndexByte(text[:key.Node().Raw.Offset], '\n') + 1
			}
		}
		ours := len(names) >= len(path) && slices.Equal(names[:len(path)], path)
		switch {
		case ours && !open:
			parts = append(parts, change{from: line, to: len(text)})
		case !ours && open:
			parts[len(parts)-1].to = line
		}
		open = ours
	}
	return parts, p.Error()
}
