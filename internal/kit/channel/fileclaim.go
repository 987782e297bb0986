package channel

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// The longest strings of a FileInfo and a FileEvent that are believed, in bytes.
const (
	maxFilePath      = 4096
	maxFileName      = 255
	maxMetadataValue = 4 << 10
)

// FileError is what went wrong with a file in a sandbox: a fault of its code's category.
type FileError struct {
	Code  ErrorCode
	fault error
}

// NewFileError makes one with a sentence.
func NewFileError(code ErrorCode, sentence string) *FileError {
	return &FileError{Code: code, fault: fault.New(code.Category(), "%s", sentence)}
}

// Error is the sentence.
func (e *FileError) Error() string { return e.fault.Error() }

// Unwrap gives the fault.
func (e *FileError) Unwrap() error { return e.fault }

// Err is nil for an OK reply of a file operation, else a *FileError. The sentence is the
// guest's, made one short line.
func (r *Reply) Err() error {
	if r.OK {
		return nil
	}
	sentence := plainLine(r.Error, 1<<10)
	if errors.Is(r.Code.Category(), fault.ErrUnavailable) {
		sentence = "the sandbox's agent failed: " + sentence
	}
	return NewFileError(r.Code, sentence)
}

// Category is what a guest's error about a file is here.
func (c ErrorCode) Category() error {
	switch c {
	case CodeNotFound:
		return fault.ErrNotFound
	case CodeExists:
		return fault.ErrConflict
	case CodePermission:
		return fault.ErrForbidden
	case CodeInvalid:
		return fault.ErrInvalid
	case CodeNoSpace:
		return fault.ErrExhausted
	default:
		return fault.ErrUnavailable
	}
}

// FileInfo returns what an OK reply tells of a file, within limits; the zero FileInfo
// if it tells of none.
func (r *Reply) FileInfo() (FileInfo, error) {
	var info FileInfo
	if len(r.Body) == 0 {
		return info, nil
	}
	if err := json.Unmarshal(r.Body, &info); err != nil {
		return FileInfo{}, &FrameError{Type: FrameReply, Length: uint32(len(r.Body)), Problem: "it tells of no file"}
	}
	return info, nil
}

// UnmarshalJSON holds a guest's claim to what a file can be: nothing is longer
// than it may be, or no UTF-8.
func (i *FileInfo) UnmarshalJSON(data []byte) error {
	type plain FileInfo
	if err := json.Unmarshal(data, (*plain)(i)); err != nil {
		return err
	}
	i.trimFields()
	return nil
}

// UnmarshalJSON does so with a change.
func (e *FileEvent) UnmarshalJSON(data []byte) error {
	type plain FileEvent
	if err := json.Unmarshal(data, (*plain)(e)); err != nil {
		return err
	}
	e.Name = cutUTF8(e.Name, maxFilePath)
	return nil
}

func (i *FileInfo) trimFields() {
	i.Path, i.Target = cutUTF8(i.Path, maxFilePath), cutUTF8(i.Target, maxFilePath)
	i.Owner, i.Group = cutUTF8(i.Owner, maxFileName), cutUTF8(i.Group, maxFileName)
	i.Resolved = cutUTF8(i.Resolved, maxFilePath)
	i.Size, i.Mode = max(i.Size, 0), i.Mode&0o7777
	i.Kind = i.Kind.knownKind()
	if i.Leads != "" {
		i.Leads = i.Leads.knownKind()
	}
	if len(i.Metadata) == 0 {
		return
	}
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(i.Metadata)) {
		if name != "" && len(kept) < MaxMetadata {
			kept[cutUTF8(name, maxFileName)] = cutUTF8(i.Metadata[name], maxMetadataValue)
		}
	}
	i.Metadata = kept
}

// knownKind is a kind that there is.
func (k FileKind) knownKind() FileKind {
	switch k {
	case KindFile, KindDir, KindSymlink:
		return k
	case KindOther:
	}
	return KindOther
}

// cutUTF8 cuts s to n bytes of UTF-8.
func cutUTF8(s string, n int) string {
	if len(s) > n {
		s = s[:n]
		for len(s) > 0 && !utf8.ValidString(s[max(0, len(s)-utf8.UTFMax):]) {
			r, size := utf8.DecodeLastRuneInString(s)
			if r != utf8.RuneError || size != 1 {
				break
			}
			s = s[:len(s)-1]
		}
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plainLine makes a guest's words one printable line of up to n bytes: what is escaped is longer than it was.
func plainLine(s string, n int) string { return cutUTF8(text.Line(cutUTF8(s, n)), n) }
