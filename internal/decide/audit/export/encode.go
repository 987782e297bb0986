// Package export writes records of the audit log for other systems: JSON lines
// and CSV, to a stream, or to a file that a follower goes on with where the last
// one stood, whatever ended it.
//
// The nine fields that an install record is asked for come first in each format.
package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Format is how records are written.
type Format string

// The formats.
const (
	JSONL Format = "jsonl"
	CSV   Format = "csv"
)

// ParseFormat reads a format's name.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case JSONL, CSV:
		return f, nil
	}
	return "", fault.Invalid("unknown format %q; known formats: jsonl, csv", name)
}

// erased stands for personal data that were erased from the log.
const erased = "(erased)"

// field is a column: its name and its text in CSV. Our own numbers are not
// guarded as texts of others are.
type field struct {
	name string
	text func(audit.Record) string
	ours bool
}

// fields are the nine, then the rest.
func fields() []field {
	return []field{
		{"timestamp", func(r audit.Record) string { return r.Time.UTC().Format(time.RFC3339Nano) }, true},
		{"agent_run_id", func(r audit.Record) string { return r.Run }, false},
		{"package_name", func(r audit.Record) string { return r.Package }, false},
		{"requested_version", func(r audit.Record) string { return r.RequestedVersion }, false},
		{"installed_version", func(r audit.Record) string { return r.InstalledVersion }, false},
		{"source_url", func(r audit.Record) string { return r.SourceURL }, false},
		{"package_hash_sha256", func(r audit.Record) string { return r.SHA256 }, false},
		{"resolved_by", func(r audit.Record) string { return r.ResolvedBy }, false},
		{"outcome", func(r audit.Record) string { return string(r.Outcome) }, false},
		{"seq", func(r audit.Record) string { return strconv.FormatUint(r.Seq, 10) }, true},
		{"kind", func(r audit.Record) string { return string(r.Kind) }, false},
		{"ecosystem", func(r audit.Record) string { return r.Ecosystem }, false},
		{"sandbox", func(r audit.Record) string { return r.Sandbox }, false},
		{"policy_digest", func(r audit.Record) string { return r.Policy }, false},
		{"requested_claimed", func(r audit.Record) string { return markText(r.RequestedClaimed) }, true},
		{"guest_claimed", func(r audit.Record) string { return markText(r.GuestClaimed) }, true},
		{"file", func(r audit.Record) string { return r.File }, false},
		{"size", func(r audit.Record) string { return formatNumber(r.Size) }, true},
		{"rule", func(r audit.Record) string { return r.Rule }, false},
		{"reason", func(r audit.Record) string { return r.Reason }, false},
		{"request_id", func(r audit.Record) string { return r.RequestID }, false},
		{"approval_id", func(r audit.Record) string { return r.Approval }, false},
		{"count", func(r audit.Record) string { return formatNumber(int64(r.Count)) }, true},
		{"command", func(r audit.Record) string { return structured(len(r.Command) > 0, r.Command) }, false},
		{"user", func(r audit.Record) string { return personal(r, r.User) }, false},
		{"token", func(r audit.Record) string { return r.OwnerToken() }, false},
		{"task", func(r audit.Record) string { return personal(r, r.Task) }, false},
		{"exit_code", exitText, true},
		{"withheld", func(r audit.Record) string { return structured(len(r.Withheld) > 0, r.Withheld) }, false},
		{"detail", func(r audit.Record) string { return structured(len(r.Detail) > 0, r.Detail) }, false},
	}
}

func markText(is bool) string {
	if is {
		return "true"
	}
	return ""
}

func formatNumber(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func exitText(r audit.Record) string {
	if r.Exit == nil {
		return ""
	}
	return strconv.Itoa(*r.Exit)
}

func personal(r audit.Record, text string) string {
	if text == "" && r.Erased {
		return erased
	}
	return text
}

// structured is a list or a map as JSON.
func structured(there bool, value any) string {
	if !there {
		return ""
	}
	data, err := plainJSON(value)
	if err != nil {
		return "" // strings and numbers only: it can't be
	}
	return string(data)
}

// plainJSON is JSON without HTML escapes and without the newline.
func plainJSON(value any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Head is what stands before the first record: the names of CSV's columns.
func Head(f Format) []byte {
	if f != CSV {
		return nil
	}
	var names []string
	for _, c := range fields() {
		names = append(names, c.name)
	}
	return csvLine(names)
}

// Line is a record in a format, newline included.
func Line(f Format, r audit.Record) ([]byte, error) {
	if f == CSV {
		var cells []string
		for _, c := range fields() {
			text := c.text(r)
			if !c.ours {
				text = Cell(text)
			}
			cells = append(cells, text)
		}
		return csvLine(cells), nil
	}
	return jsonLine(r)
}

func csvLine(cells []string) []byte {
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	_ = w.Write(cells) // into memory
	w.Flush()
	return buf.Bytes()
}

// Cell makes a text of others safe as a cell of CSV: no spreadsheet takes it for
// a formula, and no terminal for an instruction. A line break is written "\n".
func Cell(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case hostile(r) && r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		case hostile(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	safe := b.String()
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) || formulaLike(safe) {
		return "'" + safe
	}
	return safe
}

// formulaLike knows what spreadsheets take for the beginning of a formula also
// in other widths, and after spaces.
func formulaLike(text string) bool {
	text = strings.TrimLeft(text, " \u00a0\u3000")
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("=+-@＝＋－＠", r)
}

// hostile are controls, formats, separators of lines, surrogates and private use.
func hostile(r rune) bool { return unicode.In(r, unicode.C, unicode.Zl, unicode.Zp) }

// ordered is a record with the nine fields first, which are always there.
type ordered struct {
	Timestamp        time.Time     `json:"timestamp"`
	Run              string        `json:"agent_run_id"`
	Package          string        `json:"package_name"`
	RequestedVersion string        `json:"requested_version"`
	InstalledVersion string        `json:"installed_version"`
	SourceURL        string        `json:"source_url"`
	SHA256           string        `json:"package_hash_sha256"`
	ResolvedBy       string        `json:"resolved_by"`
	Outcome          audit.Outcome `json:"outcome"`
	audit.Record                   // its fields of these names are hidden by the ones above
}

func jsonLine(r audit.Record) ([]byte, error) {
	r.User, r.Task = personal(r, r.User), personal(r, r.Task)
	data, err := plainJSON(ordered{
		r.Time.UTC(), r.Run, r.Package, r.RequestedVersion, r.InstalledVersion, r.SourceURL, r.SHA256, r.ResolvedBy, r.Outcome, r,
	})
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "record %d can't be written as JSON", r.Seq)
	}
	return append(escaped(data), '\n'), nil
}

// escaped writes what a terminal could take for an instruction as JSON escapes.
func escaped(data []byte) []byte {
	if bytes.IndexFunc(data, hostile) < 0 {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		switch {
		case hostile(r) && r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		case hostile(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// Table writes rows as CSV, the first being the names of the columns.
func Table(w io.Writer, rows [][]string) error {
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, text := range row {
			cells[i] = Cell(text)
		}
		if _, err := w.Write(csvLine(cells)); err != nil {
			return err
		}
	}
	return nil
}
