package ecosystem

import (
	"bytes"
	"io"
)

// Page is an upstream's answer, whole and inflated.
type Page struct {
	URL         string // where it came from, after redirects
	ContentType string
	Body        io.Reader // to be read once
}

// PageOf makes a page of bytes.
func PageOf(url, contentType string, body []byte) Page {
	return Page{URL: url, ContentType: contentType, Body: bytes.NewReader(body)}
}

// MemoryRows are rows in memory. The zero value is empty.
type MemoryRows struct{ data []byte }

// Append implements Rows.
func (m *MemoryRows) Append(p []byte) (Extent, error) {
	e := Extent{Offset: int64(len(m.data)), Length: int64(len(p))}
	m.data = append(m.data, p...)
	return e, nil
}

// ReadAt implements io.ReaderAt.
func (m *MemoryRows) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(m.data).ReadAt(p, off)
}

// Slice reads one extent; nil for an empty one.
func Slice(rows io.ReaderAt, e Extent) ([]byte, error) {
	if e.Length == 0 {
		return nil, nil
	}
	p := make([]byte, e.Length)
	if _, err := rows.ReadAt(p, e.Offset); err != nil {
		return nil, err
	}
	return p, nil
}
