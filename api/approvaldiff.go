package api

// ApprovalDiff is the answer of GET /v1/approvals/{id}/diff (query: path, a file within the release;
// file, the file of the release that is meant if there are several): how a release that was
// asked for differs from the one of its package that was approved before. Names and texts are
// their publishers'.
type ApprovalDiff struct {
	File string `json:"file"` // of the release
	// Against is the file that it is compared with, and AgainstVersion and AgainstRequest are whose it is;
	// "": none was approved before whose bytes are still here, and all is new.
	Against        string `json:"against,omitempty"`
	AgainstVersion string `json:"against_version,omitempty"`
	AgainstRequest string `json:"against_request,omitempty"`
	// Note says why it is compared with nothing.
	Note string `json:"note,omitempty"`
	// Changes are without a path in the query: what runs by itself first, at most 2,000 of Total. Same
	// counts the files that both have.
	Changes []FileChange `json:"changes,omitempty"`
	Total   int          `json:"total"`
	Same    int          `json:"same"`
	// Text is with a path in the query.
	Text *FileText `json:"text,omitempty"`
}

// FileChange is a file that two releases do not both have, or have with other bytes.
type FileChange struct {
	Path   string `json:"path"`
	Was    int64  `json:"was"`              // bytes; -1: it is new
	Is     int64  `json:"is"`               // bytes; -1: it is gone
	Runs   string `json:"runs,omitempty"`   // when it runs by itself, as far as its name tells
	Native bool   `json:"native,omitempty"` // of machine code
}

// FileText is a file of a release.
type FileText struct {
	Path   string `json:"path"`
	Was    int64  `json:"was"`              // bytes; -1: the earlier release has none
	Is     int64  `json:"is"`               // bytes; -1: the later one has none
	Binary bool   `json:"binary,omitempty"` // it is not shown
	Cut    bool   `json:"cut,omitempty"`    // of a file with more than 1 MiB, the beginning was looked at
	Diff   string `json:"diff,omitempty"`   // in unified form, of a file that is new against nothing
}
