package index

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Field is a field of a record that is asked by, under its name in questions.
type Field struct {
	Name   string
	Column string // of records
	What   string // for help
}

// Fields are all fields that hold texts.
func Fields() []Field {
	return []Field{
		{"kind", "kind", "what the record is about"},
		{"outcome", "outcome", "what became of it"},
		{"run", "run", "the run"},
		{"sandbox", "sandbox", "the sandbox"},
		{"policy", "policy", "the digest of the policy"},
		{"ecosystem", "ecosystem", "python, node, go, rust"},
		{"package", "package", "the canonical name"},
		{"requested", "requested", "the version as it was asked for"},
		{"version", "version", "the release's version"},
		{"file", "file", "the file's name"},
		{"source", "source", "the URL that it came from"},
		{"host", "host", "where that leads, https://files.example"},
		{"sha256", "sha256", "the file's digest, hexadecimal"},
		{"resolved-by", "resolved_by", "the step of the policy that decided"},
		{"rule", "rule", "the rule that decided"},
		{"reason", "reason", "the reason that was given"},
		{"request", "request", "the id that the client was shown"},
		{"approval", "approval", "the request in the approval queue"},
		{"user", "user", "who, on the host"},
		{"token", "token", "the id of the token whose run it is"},
		{"task", "task", "the run's stated task"},
		{"command", "command", "the command, words with spaces between"},
	}
}

func fieldNames() string {
	var names []string
	for _, f := range Fields() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// Filter selects records; its zero value selects all.
type Filter struct {
	// Where has, by a field's name, the values of which the record has to have
	// one. A value that ends in "*" stands for all that begin so.
	Where map[string][]string
	// Text is in some text of the record, in any case of ASCII letters.
	Text         string
	Since, Until time.Time // until is not included; zero: not bounded
	From         uint64    // the first record's number
	// Flags are those that the record has to have.
	Flags int
	Exit  *int
	Limit int // 0: none
}

// where is a WHERE clause as it grows.
type where struct {
	terms []string
	args  []any
}

func (w *where) addTerm(term string, args ...any) {
	w.terms, w.args = append(w.terms, term), append(w.args, args...)
}

// Select returns the numbers of the selected records, in ascending order, and
// whether there are more than the filter's limit.
func (v *View) Select(ctx context.Context, f Filter) (seqs []uint64, more bool, err error) {
	w, err := v.whereFilter(ctx, f)
	if err != nil {
		return nil, false, err
	}
	query := "SELECT seq FROM records WHERE " + strings.Join(w.terms, " AND ") + " ORDER BY seq"
	if f.Limit > 0 {
		query += " LIMIT ?"
		w.args = append(w.args, f.Limit+1)
	}
	seqs, err = v.Seqs(ctx, query, w.args...)
	if f.Limit > 0 && len(seqs) > f.Limit {
		return seqs[:f.Limit], true, err
	}
	return seqs, false, err
}

func (v *View) whereFilter(ctx context.Context, f Filter) (*where, error) {
	from, to, err := v.Between(ctx, f.Since, f.Until)
	if err != nil {
		return nil, err
	}
	w := &where{}
	w.addTerm("seq >= ? AND seq < ?", int64(max(from, f.From)), int64(to))
	named := 0
	for _, field := range Fields() {
		values, asked := f.Where[field.Name]
		if !asked {
			continue
		}
		named++
		if err := v.equals(ctx, w, field, values); err != nil {
			return nil, err
		}
	}
	if named != len(f.Where) {
		return nil, fault.Invalid("unknown field; known fields: %s", fieldNames())
	}
	if f.Flags != 0 {
		w.addTerm("flags & ? = ?", f.Flags, f.Flags)
	}
	if f.Exit != nil {
		w.addTerm("exit = ?", *f.Exit)
	}
	if f.Text != "" {
		err = v.contains(ctx, w, f.Text)
	}
	return w, err
}

// equals narrows to records whose field has one of the values.
func (v *View) equals(ctx context.Context, w *where, field Field, values []string) error {
	inline := field.Column == "request"
	var terms []string
	var args []any
	for _, value := range values {
		prefix, begins := strings.CutSuffix(value, "*")
		switch {
		case begins && inline:
			terms, args = append(terms, "substr(request, 1, length(?)) = ?"), append(args, prefix, prefix)
		case begins:
			terms = append(terms, field.Column+" IN (SELECT id FROM texts WHERE substr(text, 1, length(?)) = ?)")
			args = append(args, prefix, prefix)
		case inline:
			terms, args = append(terms, "request = ?"), append(args, value)
		default:
			id, err := v.ID(ctx, value)
			if err != nil {
				return err
			}
			terms, args = append(terms, field.Column+" = ?"), append(args, id)
		}
	}
	if len(terms) == 0 {
		terms = []string{"FALSE"}
	}
	w.addTerm("("+strings.Join(terms, " OR ")+")", args...)
	return nil
}

// contains narrows to records with the text in one of theirs. Texts are read
// through once; there are fewer of them than records.
func (v *View) contains(ctx context.Context, w *where, text string) error {
	hits, err := v.IDs(ctx, "SELECT id FROM texts WHERE instr(lower(text), lower(?)) > 0", text)
	if err != nil {
		return err
	}
	terms := []string{"request = ?"}
	w.args = append(w.args, text)
	for _, field := range append(Fields(), Field{Column: "detail"}) {
		if field.Column != "request" && len(hits) > 0 {
			terms = append(terms, field.Column+" IN "+Listed)
			w.args = append(w.args, List(hits))
		}
	}
	w.terms = append(w.terms, "("+strings.Join(terms, " OR ")+")")
	return nil
}

// Listed is, in a query, the numbers of the List that is given for its "?".
const Listed = "(SELECT value FROM json_each(?))"

// List makes one argument of numbers; see Listed.
func List(ids []int64) string {
	text := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(append(text, ']'))
}

// IDs reads a query's one column of numbers.
func (v *View) IDs(ctx context.Context, query string, args ...any) ([]int64, error) {
	rows, err := v.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // Err tells
	ids := []int64{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Seqs reads a query's one column of records' numbers.
func (v *View) Seqs(ctx context.Context, query string, args ...any) ([]uint64, error) {
	ids, err := v.IDs(ctx, query, args...)
	seqs := make([]uint64, len(ids))
	for i, id := range ids {
		seqs[i] = uint64(id)
	}
	return seqs, err
}
