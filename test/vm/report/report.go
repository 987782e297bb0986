// Package report is what the guest of test/vm tells the host of its checks, a line of JSON
// for each, and how the host reads that: what is missing, told twice or can't be read is no
// success.
//
// A check is one question that is answered in the guest; a result is its
// answer; the control is a check that must fail, and shows that a failure gets through.
package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Result is the answer of a check.
type Result struct {
	Check   string  `json:"check"`
	Passed  bool    `json:"passed"`
	Detail  string  `json:"detail"`  // what was seen, or what is wrong; never empty
	Seconds float64 `json:"seconds"` // by the guest's clock
}

// end is the last line: without it the guest did not come to its end.
type end struct {
	End int `json:"end"` // how many results came before
}

// longestLine bounds what the host reads of one.
const longestLine = 1 << 20

// mostDetail bounds what a result says.
const mostDetail = 16 << 10

// Writer tells results. Not safe for concurrent use.
type Writer struct {
	out  io.Writer
	told int
}

// NewWriter writes to out, each line in one write.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Tell writes a result; of a long detail the beginning and the end.
func (w *Writer) Tell(r Result) error {
	if cut := len(r.Detail) - mostDetail; cut > 0 {
		r.Detail = r.Detail[:mostDetail/2] + fmt.Sprintf("\n[%d bytes]\n", cut) + r.Detail[len(r.Detail)-mostDetail/2:]
	}
	r.Detail = strings.ToValidUTF8(r.Detail, "?")
	w.told++
	return w.write(r)
}

// End says that there are no more.
func (w *Writer) End() error { return w.write(end{End: w.told}) }

func (w *Writer) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.out.Write(append(line, '\n'))
	return err
}

// Read reads a whole report. The error says what is wrong with the report itself; the
// results that could be read are there all the same.
func Read(in io.Reader) (map[string]Result, error) {
	results := map[string]Result{}
	lines := bufio.NewReader(io.LimitReader(in, 64*longestLine))
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return results, fmt.Errorf("line %d: the report ends without its last line, behind %q", n, line)
		}
		if err != nil {
			return results, err
		}
		if len(line) > longestLine {
			return results, fmt.Errorf("line %d has %d bytes", n, len(line))
		}
		var last end
		if strict(line, &last) == nil {
			return results, ended(lines, last.End, len(results))
		}
		var r Result
		if err := strict(line, &r); err != nil {
			return results, fmt.Errorf("line %d: %w: %q", n, err, line)
		}
		if _, twice := results[r.Check]; twice {
			return results, fmt.Errorf("line %d: %s is told twice", n, r.Check)
		}
		results[r.Check] = r
	}
}

// ended: the last line counts what came, and nothing comes behind it.
func ended(lines *bufio.Reader, told, read int) error {
	if told != read {
		return fmt.Errorf("the guest told %d results, and %d came", told, read)
	}
	if rest, err := lines.Peek(1); err == nil {
		return fmt.Errorf("something follows the last line: %q", rest)
	}
	return nil
}

// strict decodes one object that has exactly the fields of v, once each.
func strict(line string, v any) error {
	var there map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &there); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(again, &want); err != nil {
		return err
	}
	for name := range want {
		if _, ok := there[name]; !ok {
			return fmt.Errorf("%s is missing", name)
		}
	}
	decoder := json.NewDecoder(strings.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return err
	}
	if decoder.More() {
		return errors.New("there is more than one value")
	}
	return nil
}
