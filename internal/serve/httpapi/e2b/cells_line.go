package e2b

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/interpreter"
)

// sendLine writes one line. An error is a client that is gone.
func (s *lineStream) sendLine(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(lineTimeout)) // a writer of tests has none
	if _, err := s.w.Write(append(line, '\n')); err != nil {
		return err
	}
	return s.control.Flush()
}

// failWith tells of an error that no cell has raised.
func (s *lineStream) failWith(name, sentence string) {
	_ = s.sendLine(lineOfFailure(interpreter.Failure{Name: name, Value: sentence})) // a client that is gone is its own loss
}

func lineOfEnd() any { return map[string]any{"type": "end_of_execution"} }

func lineOfFailure(f interpreter.Failure) any {
	trace := f.Traceback
	if trace == "" {
		trace = f.Name + ": " + f.Value
	}
	return map[string]any{"type": "error", "name": f.Name, "value": f.Value, "traceback": trace}
}

// lineOf is an event as clients read it.
func lineOf(e interpreter.Event) any {
	switch {
	case e.Result != nil:
		return lineOfResult(e.Result)
	case e.Error != nil:
		return lineOfFailure(*e.Error)
	case e.Count != nil:
		return map[string]any{"type": "number_of_executions", "execution_count": *e.Count}
	case e.Stderr != "":
		return map[string]any{"type": "stderr", "text": e.Stderr, "timestamp": e.At.UnixNano()}
	default:
		return map[string]any{"type": "stdout", "text": e.Stdout, "timestamp": e.At.UnixNano()}
	}
}

// fieldsOfResult are what clients call the formats that they know. Another format is in "extra" by its own name.
func fieldsOfResult() map[string]string {
	return map[string]string{
		"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg", "image/png": "png", "image/jpeg": "jpeg",
		"application/pdf": "pdf", "text/latex": "latex", "application/json": "json", "application/javascript": "javascript",
		interpreter.FormatData: "data", interpreter.FormatChart: "chart",
	}
}

func lineOfResult(r *interpreter.Result) any {
	line := map[string]any{"type": "result", "is_main_result": r.Main}
	fields, extra := fieldsOfResult(), map[string]any{}
	for format, value := range r.Formats {
		if name, known := fields[format]; known {
			line[name] = json.RawMessage(value)
		} else {
			extra[format] = json.RawMessage(value)
		}
	}
	if text, ok := line["text"].(json.RawMessage); ok {
		line["text"] = unquoted(text)
	}
	if len(extra) > 0 {
		line["extra"] = extra
	}
	return line
}

// unquoted is a text without the quotes that Python puts around a string: clients of this wire
// expect it so.
func unquoted(raw json.RawMessage) any {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return raw
	}
	if len(text) >= 2 && strings.HasPrefix(text, "'") && strings.HasSuffix(text, "'") {
		return text[1 : len(text)-1]
	}
	return text
}
