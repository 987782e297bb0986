package api

import "time"

// FileInfo tells of one file of a sandbox: the answer of GET
// /v1/sandboxes/{id}/files/stat, of PUT /v1/sandboxes/{id}/files, and each line
// of GET /v1/sandboxes/{id}/files/list. All of it is the sandbox's own claim: a
// client must not take a name in it for a path of the client's machine unchecked.
//
// The query of all file routes has path (absolute, or relative to the user's
// home; "~" is the home) and user ("": the sandbox's own, or root).
type FileInfo struct {
	Path     string            `json:"path"` // absolute
	Kind     string            `json:"kind"` // file, dir, symlink, other
	Target   string            `json:"target,omitempty"`
	Size     int64             `json:"size"`
	Mode     uint32            `json:"mode"` // permission bits
	Owner    string            `json:"owner"`
	Group    string            `json:"group"`
	Modified time.Time         `json:"modified"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// FileSizeHeader is a header of the answer to GET /v1/sandboxes/{id}/files: how many bytes the file
// had when it was opened, as the sandbox says. The body may have fewer, where it breaks off.
const FileSizeHeader = "Cofferdam-File-Size"

// MakeDirectory is the body of POST /v1/sandboxes/{id}/files/mkdir; parents are
// made, and status 409 says that it is there.
type MakeDirectory struct {
	Path string `json:"path"`
	User string `json:"user,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // 0: 0755
}

// MoveFile is the body of POST /v1/sandboxes/{id}/files/move.
type MoveFile struct {
	Path string `json:"path"`
	To   string `json:"to"`
	User string `json:"user,omitempty"`
}
