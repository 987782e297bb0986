package channel

import "time"

// Limits of what a guest tells of files.
const (
	MaxMetadata    = 64 // of one file
	MaxListDepth   = 100
	MaxListEntries = 100_000
	MaxResolved    = 1_000 // symbolic links of one list that are followed to their ends
)

// FileOp is an operation on the sandbox's files. All are done inside, with the
// rights of File.User, so that a path means what it means there: the host never
// resolves one. A path's ".." takes a name away before links are looked at, and no
// path leads into the process table (/proc), but a read or stat of what it says of the
// system and of no process.
//
// A host that closes or half-closes a list, a read or a watch wants no more of it.
type FileOp string

// The operations and what follows the first Reply, whose Body is a FileInfo
// where there is one file to tell of.
const (
	FileStat   FileOp = "stat"   // nothing; a symbolic link is told of, not followed
	FileList   FileOp = "list"   // FrameEvent with FileEntries, any number; then a last Reply
	FileMkdir  FileOp = "mkdir"  // nothing; parents are made; CodeExists if it is there
	FileMove   FileOp = "move"   // nothing; to To, over a file that is there; its parents are made
	FileRemove FileOp = "remove" // nothing; a directory with all that is in it
	// FileRead: FrameStdout, any number; then a last Reply, which tells of an error
	// that came in the middle. Only regular files can be read, and only the
	// FileInfo.Size bytes that they had when they were opened; fewer are an error. Of a
	// file that says no size Size is what was read of it.
	FileRead FileOp = "read"
	// FileWrite: the host sends FrameStdin and an empty one at the end; then a last
	// Reply with the FileInfo, or, at any time, with an error. Parents are made, a
	// symbolic link is followed, and the file is replaced in one step, or left as
	// it was: by a new one, which is the user's and has the metadata of the call only.
	FileWrite FileOp = "write"
	// FileWatch: FrameEvent with FileEvents until the host closes the stream.
	FileWatch FileOp = "watch"
)

// File is the call of one operation.
type File struct {
	Op   FileOp `json:"op"`
	User string `json:"user,omitempty"` // as in Exec
	// Path is absolute, or relative to the user's home; "~" is the home.
	Path string `json:"path"`
	To   string `json:"to,omitempty"`
	// Depth of a list: 1 is the directory's own entries.
	Depth int `json:"depth,omitempty"`
	// Recursive watches what is below, too.
	Recursive bool `json:"recursive,omitempty"`
	// Mode of a file or directory that is made; 0: 0644, or 0755, or that of the
	// file that is replaced.
	Mode uint32 `json:"mode,omitempty"`
	// Give, of a write or mkdir as root, gives what is made to the sandbox's own user, with
	// the directories that were made for it: where only root may write, a client of that
	// user's has places of its own. Nothing that is another's is replaced, and of the
	// symbolic links on the way only root's are followed.
	Give bool `json:"give,omitempty"`
	// Metadata of a written file becomes extended attributes "user.NAME".
	Metadata map[string]string `json:"metadata,omitempty"`
}

// FileKind is what lies at a path.
type FileKind string

// The kinds.
const (
	KindFile    FileKind = "file"
	KindDir     FileKind = "dir"
	KindSymlink FileKind = "symlink"
	KindOther   FileKind = "other" // a device, socket or pipe
)

// FileInfo tells of one file. All of it is the guest's claim.
type FileInfo struct {
	Path   string   `json:"path"` // absolute
	Kind   FileKind `json:"kind"`
	Target string   `json:"target,omitempty"` // of a symbolic link, as it is written
	// Resolved is the path, without links, of what a symbolic link leads to in the end,
	// and Leads its kind. Both are empty where that can't be told: there is nothing, it is
	// not for the user to see, it lies in the process table, or the list has too many links.
	Resolved string            `json:"resolved,omitempty"`
	Leads    FileKind          `json:"leads,omitempty"`
	Size     int64             `json:"size"`
	Mode     uint32            `json:"mode"` // permission bits, with setuid, setgid and sticky as in stat(2)
	Owner    string            `json:"owner"`
	Group    string            `json:"group"`
	Modified time.Time         `json:"modified"`
	Metadata map[string]string `json:"metadata,omitempty"`
}

// FileEntries is a part of a list, in the order of paths.
type FileEntries struct {
	Entries []FileInfo `json:"entries"`
}

// FileEvents is what a watch saw, in order.
type FileEvents struct {
	Events []FileEvent `json:"events"`
	// Lost tells that there were more than could be kept.
	Lost bool `json:"lost,omitempty"`
}

// Change is what happened to a file.
type Change string

// The changes.
const (
	ChangeCreate Change = "create" // in a directory that was made just before, it may be told twice
	ChangeWrite  Change = "write"
	ChangeRemove Change = "remove"
	ChangeRename Change = "rename" // the old name; the new one is created
	ChangeChmod  Change = "chmod"
)

// FileEvent is one change.
type FileEvent struct {
	Name   string `json:"name"` // relative to the watched directory; "." is itself, and the end
	Change Change `json:"change"`
}

// ErrorCode says what kind of error a file's is.
type ErrorCode string

// The codes; "" is an error of the agent's own.
const (
	CodeInvalid    ErrorCode = "invalid" // a path that can't be one, or the wrong kind of file
	CodeNotFound   ErrorCode = "not_found"
	CodeExists     ErrorCode = "exists"
	CodePermission ErrorCode = "permission"
	CodeNoSpace    ErrorCode = "no_space"
)

// DiskUsage is how full the sandbox's root file system is, in bytes.
type DiskUsage struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}
