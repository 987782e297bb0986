package interpreter

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// request is what a kernel is told, a line each. Op is "run" (Cell, Code, and Env for as long
// as the cell runs), "begin" (Env and Dir of a kernel that was started before they were
// known), "warm" (it is to do once what takes long only once, and say "ready"), "idle" (it is to
// say "ready" once no cell runs) or "interrupt".
//
// All its fields are always written: a kernel is no Go program, and to one of an earlier release,
// which may still run, a text that is not there is none.
type request struct {
	Op   string            `json:"op"`
	Cell string            `json:"cell"`
	Code string            `json:"code"`
	Env  map[string]string `json:"env"`
	Dir  string            `json:"dir"`
}

// kernelMessage is what a kernel says. Kind is "ready" or "broken" (Text says why) of a kernel that
// was started; "begin", "stdout" and "stderr" (Text), "result" (Main, Data by MIME type),
// "error" (Name, Value, Traceback) and "done" (Count) of a cell.
type kernelMessage struct {
	Kind      string  `json:"kind"`
	Cell      string  `json:"cell"`
	Text      string  `json:"text"`
	Main      bool    `json:"main"`
	Data      formats `json:"data"`
	Name      string  `json:"name"`
	Value     string  `json:"value"`
	Traceback string  `json:"traceback"`
	Count     int64   `json:"count"`
}

// formats are a result's, by MIME type. One that has more than any kernel of ours sends is
// not read on: a line of small ones would take many times its length of memory.
type formats map[string]jsontext.Value

var errManyFormats = fmt.Errorf("a result has more than %d formats", mostFormats)

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (f *formats) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	begin, err := from.ReadToken()
	if err != nil || begin.Kind() == jsontext.KindNull {
		return err
	}
	if begin.Kind() != jsontext.KindBeginObject {
		return errors.New("a result's formats are no object")
	}
	*f = formats{}
	for from.PeekKind() != jsontext.KindEndObject {
		if len(*f) >= mostFormats {
			return errManyFormats
		}
		token, err := from.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		value, err := from.ReadValue()
		if err != nil {
			return err
		}
		(*f)[name] = value.Clone()
	}
	_, err = from.ReadToken()
	return err
}

// parseLine reads a line strictly. The line is used up.
func parseLine(line []byte) (kernelMessage, error) {
	var m kernelMessage
	if err := json.Unmarshal(unmark(line), &m, json.RejectUnknownMembers(true)); err != nil {
		return m, fault.Invalid("the kernel sent a line that is no message: %s", text.Shorten(err.Error(), 200))
	}
	switch m.Kind {
	case "ready", "broken", "begin", "stdout", "stderr", "result", "error", "done":
		return m, nil
	}
	return m, fault.Invalid("the kernel sent a message of the unknown kind %q", text.Shorten(m.Kind, 40))
}

// The MIME types of what is no text: data of a table, what a chart plots.
const (
	FormatData  = "application/vnd.cofferdam.data+json"
	FormatChart = "application/vnd.cofferdam.chart+json"
)

// result makes of a message what a client may get: known formats in their own form, others
// as they are.
func (m kernelMessage) result() *Result {
	r := &Result{Main: m.Main, Formats: map[string]jsontext.Value{}}
	for format, value := range m.Data {
		if len(r.Formats) < maxFormats && printableFormat(format) && fitsFormat(format, value) {
			r.Formats[format] = value
		}
	}
	if len(r.Formats) == 0 {
		return nil
	}
	return r
}

// fitsFormat tells whether a value has the form of its format.
func fitsFormat(format string, value jsontext.Value) bool {
	kind := value.Kind()
	switch format {
	case "image/png", "image/jpeg", "application/pdf":
		var text string
		if json.Unmarshal(value, &text) != nil {
			return false
		}
		_, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		return err == nil
	case FormatData, FormatChart:
		return kind == jsontext.KindBeginObject
	case "application/json":
		return true
	case "application/javascript", "image/svg+xml":
		return kind == jsontext.KindString
	}
	return !strings.HasPrefix(format, "text/") || kind == jsontext.KindString
}

func printableFormat(name string) bool {
	return name != "" && len(name) <= maxFormat && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}
