package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// record FILE CONDITION... holds if a JSON document of FILE (one a line, or one
// in all) fulfils all conditions:
//
//	field=TEXT    the field is exactly this
//	field~REGEXP  the field is there, and the expression matches it
//	field         the field is there and not empty
//
// A field is a path of names and numbers, such as detail.wanted_by or
// command.0. With ! before it, no document may fulfil them.
func record(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: [!] record FILE FIELD[=TEXT|~REGEXP]...")
	}
	text := ts.ReadFile(args[0])
	nearest, most := "", -1
	for _, doc := range documents(text) {
		held := 0
		for _, c := range args[1:] {
			ok, err := holds(doc, c)
			ts.Check(err)
			if ok {
				held++
			}
		}
		if held == len(args)-1 && neg {
			ts.Fatalf("this should not be there: %s", oneLine(doc))
		}
		if held == len(args)-1 {
			return
		}
		if held > most {
			nearest, most = doc, held
		}
	}
	if !neg {
		ts.Fatalf("no document of %s is so; the nearest is %s", args[0], oneLine(nearest))
	}
}

// take NAME FILE FIELD sets a variable to a field of the first document of FILE
// that has it.
func take(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: take NAME FILE FIELD")
	}
	for _, doc := range documents(ts.ReadFile(args[1])) {
		if value, err := valueAt(doc, args[2]); err == nil {
			ts.Setenv(args[0], value)
			return
		}
	}
	ts.Fatalf("no document of %s has %s", args[1], args[2])
}

// documents are a text's lines if each is a JSON document, else the text.
func documents(text string) []string {
	var docs []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "{") && json.Valid([]byte(line)) {
			docs = append(docs, line)
		}
	}
	if len(docs) == 0 {
		return []string{text}
	}
	return docs
}

func holds(doc, condition string) (bool, error) {
	at := strings.IndexAny(condition, "=~")
	if at < 0 {
		value, err := valueAt(doc, condition)
		return err == nil && value != "", nil
	}
	value, err := valueAt(doc, condition[:at])
	if err != nil {
		return false, nil //nolint:nilerr // a field that is not there fulfils no condition
	}
	if condition[at] == '=' {
		return value == condition[at+1:], nil
	}
	re, err := regexp.Compile(condition[at+1:])
	if err != nil {
		return false, fmt.Errorf("the condition %s: %w", condition, err)
	}
	return re.MatchString(value), nil
}

// valueAt is the text of a field; text is itself, anything else JSON.
func valueAt(doc, field string) (string, error) {
	var v any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		return "", fmt.Errorf("read the document: %w", err)
	}
	for name := range strings.SplitSeq(field, ".") {
		v = member(v, name)
	}
	switch v := v.(type) {
	case nil:
		return "", fmt.Errorf("there is no %s", field)
	case string:
		return v, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", field, err)
	}
	return string(text), nil
}

func member(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}
