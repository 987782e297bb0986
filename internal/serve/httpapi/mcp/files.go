package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// Limits of files, in bytes and entries.
const (
	defaultRead = 64 << 10
	maxRead     = 1 << 20
	maxOffset   = 1 << 30 // what is before it is read, too, and a file inside may have no end
	maxWrite    = 2 << 20
	maxPath     = 4 << 10
	maxEntries  = 500
	maxCounted  = 10_000
	maxDepth    = 8
)

type readInput struct {
	aboutSandbox

	Path   string `json:"path" jsonschema:"absolute, or relative to the home folder"`
	Offset int64  `json:"offset,omitempty" jsonschema:"begin after so many bytes"`
	Max    int    `json:"max_bytes,omitempty" jsonschema:"return at most so many bytes (default: 65536, at most 1048576)"`
}

type readOutput struct {
	Sandbox   string `json:"sandbox"`
	Path      string `json:"path"`
	Content   string `json:"content"`   // the file's text, or base64 if binary is true
	Binary    bool   `json:"binary"`    // content is base64: it is no UTF-8, or has control characters
	Size      int64  `json:"size"`      // of the whole file, in bytes
	Truncated bool   `json:"truncated"` // there is more; go on with offset
	Next      int64  `json:"next_offset,omitempty"`
}

func checkPath(path string) error {
	if path == "" || len(path) > maxPath {
		return failure(codeInvalid, fmt.Sprintf("path has %d bytes; it has 1 to %d", len(path), maxPath), "")
	}
	return nil
}

func readFile(ctx context.Context, c call, in readInput) (readOutput, error) {
	if err := checkPath(in.Path); err != nil {
		return readOutput{}, err
	}
	if in.Max == 0 {
		in.Max = defaultRead
	}
	if in.Max < 0 || in.Max > maxRead || in.Offset < 0 || in.Offset > maxOffset {
		return readOutput{}, failure(codeInvalid, fmt.Sprintf("offset is 0 to %d, max_bytes 1 to %d", maxOffset, maxRead), "for what is further behind use run_command, as with tail -c")
	}
	id, err := c.peer.needSandbox(ctx, in.Sandbox)
	if err != nil {
		return readOutput{}, err
	}
	data, size, err := c.peer.readPart(ctx, id, in)
	if err != nil {
		return readOutput{}, ofFile(c.peer.goneError(ctx, id, err))
	}
	out := readOutput{Sandbox: id, Path: ui.Printable(in.Path), Size: size, Truncated: in.Offset+int64(len(data)) < size}
	if data, out.Binary = wholeText(data, out.Truncated); out.Binary {
		out.Content = base64.StdEncoding.EncodeToString(data)
	} else {
		out.Content = string(data)
	}
	if out.Truncated {
		out.Next = in.Offset + int64(len(data))
	}
	return out, nil
}

// readPart fetches a part of a file. Its size is that of the file that was opened, whatever links led to
// it. It is the guest's claim, and may be another by the time that the file is read: what comes is
// counted.
func (p *peer) readPart(ctx context.Context, id string, in readInput) (data []byte, size int64, err error) {
	f := client.File{Path: in.Path}
	content, err := askBackend(ctx, p, func(b Backend) (*client.FileContent, error) { return b.ReadFile(ctx, id, f) })
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = content.Close() }()
	if skipped, err := io.CopyN(io.Discard, content, in.Offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	} else if skipped < in.Offset {
		return nil, skipped, nil
	}
	data, err = io.ReadAll(io.LimitReader(content, int64(in.Max)))
	if err != nil {
		return nil, 0, err
	}
	end := in.Offset + int64(len(data))
	switch {
	case len(data) < in.Max:
		return data, end, nil
	case content.Size >= 0:
		return data, max(content.Size, end), nil
	}
	rest, err := io.CopyN(io.Discard, content, maxRead) // of an older daemon: what there is at least
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	return data, end + rest, nil
}

// wholeText tells whether data is plain text. With cut, a character whose rest was cut off
// at the end is left out.
func wholeText(data []byte, cut bool) (text []byte, binary bool) {
	text = data
	if cut {
		for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
			if at := len(data) - i; utf8.RuneStart(data[at]) {
				if !utf8.FullRune(data[at:]) {
					text = data[:at]
				}
				break
			}
		}
	}
	if !utf8.Valid(text) || bytes.ContainsFunc(text, hidden) {
		return data, true
	}
	return text, false
}

// hidden are characters that no plain text has: they would be written as escapes, and the
// content would be another one.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && r != '\r' && unicode.In(r, unicode.C, unicode.Zl, unicode.Zp)
}

type writeInput struct {
	aboutSandbox

	Path       string `json:"path" jsonschema:"absolute, or relative to the home folder"`
	Content    string `json:"content"`
	Binary     bool   `json:"binary,omitempty" jsonschema:"content is base64"`
	Executable bool   `json:"executable,omitempty"`
}

type writeOutput struct {
	Sandbox string `json:"sandbox"`
	Path    string `json:"path"`
	Size    int64  `json:"size"`
}

func writeFile(ctx context.Context, c call, in writeInput) (writeOutput, error) {
	if err := checkPath(in.Path); err != nil {
		return writeOutput{}, err
	}
	data := []byte(in.Content)
	if in.Binary {
		var err error
		if data, err = base64.StdEncoding.DecodeString(in.Content); err != nil {
			return writeOutput{}, failure(codeInvalid, "content is not base64: "+err.Error(), "")
		}
	}
	if len(data) > maxWrite {
		return writeOutput{}, failure(codeTooLarge, fmt.Sprintf("content has %d bytes; it may have %d", len(data), maxWrite), "write it in parts and join them inside")
	}
	id, err := c.peer.needSandbox(ctx, in.Sandbox)
	if err != nil {
		return writeOutput{}, err
	}
	f := client.File{Path: in.Path}
	if in.Executable {
		f.Mode = 0o755
	}
	info, err := askBackend(ctx, c.peer, func(b Backend) (api.FileInfo, error) { return b.WriteFile(ctx, id, f, bytes.NewReader(data)) })
	if err != nil {
		return writeOutput{}, ofFile(c.peer.goneError(ctx, id, err))
	}
	return writeOutput{Sandbox: id, Path: ui.Printable(info.Path), Size: info.Size}, nil
}

type listInput struct {
	aboutSandbox

	Path  string `json:"path,omitempty" jsonschema:"the folder (default: the home folder)"`
	Depth int    `json:"depth,omitempty" jsonschema:"1 (the default) is the folder's own entries; at most 8"`
}

type dirEntry struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"` // file, dir, symlink or other
	Size   int64  `json:"size"`
	Target string `json:"target,omitempty"` // of a symlink
	// Escaped tells that path is no path to give back: the name has control characters, which are
	// written as escapes, or bytes that are no UTF-8, for which U+FFFD stands.
	Escaped bool `json:"escaped,omitempty"`
}

func viewEntry(info api.FileInfo) dirEntry {
	e := dirEntry{Path: ui.Printable(info.Path), Kind: text.Shorten(ui.Printable(info.Kind), 16), Size: info.Size, Target: text.Shorten(ui.Printable(info.Target), maxPath)}
	if e.Escaped = e.Path != info.Path || strings.ContainsRune(info.Path, utf8.RuneError); e.Escaped {
		e.Path = ui.PrintableName(info.Path)
	}
	return e
}

type listOutput struct {
	Sandbox   string     `json:"sandbox"`
	Entries   []dirEntry `json:"entries"`
	Total     int        `json:"total"` // how many there are, or 10000 if there are more
	Truncated bool       `json:"truncated"`
}

func listFiles(ctx context.Context, c call, in listInput) (listOutput, error) {
	if in.Path == "" {
		in.Path = "~"
	}
	if in.Depth == 0 {
		in.Depth = 1
	}
	if err := checkPath(in.Path); err != nil {
		return listOutput{}, err
	}
	if in.Depth < 0 || in.Depth > maxDepth {
		return listOutput{}, failure(codeInvalid, fmt.Sprintf("depth is %d; it is 1 to %d", in.Depth, maxDepth), "")
	}
	id, err := c.peer.needSandbox(ctx, in.Sandbox)
	if err != nil {
		return listOutput{}, err
	}
	out := listOutput{Sandbox: id, Entries: []dirEntry{}}
	err = tellBackend(ctx, c.peer, func(b Backend) error {
		for info, err := range b.ListFiles(ctx, id, client.File{Path: in.Path}, in.Depth) {
			if err != nil {
				return err
			}
			if out.Total++; out.Total >= maxCounted {
				break
			}
			if len(out.Entries) < maxEntries {
				out.Entries = append(out.Entries, viewEntry(info))
			}
		}
		return nil
	})
	if err != nil {
		return listOutput{}, ofFile(c.peer.goneError(ctx, id, err))
	}
	out.Truncated = out.Total > len(out.Entries)
	return out, nil
}
