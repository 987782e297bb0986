package audit

// Keys of Record.Detail, of records of KindFile. Both the begin, with the outcome Started, and the
// end have them, and the path as Record.File, as the client said it: absolute, or relative to the
// user's home. The end has the number of its begin as began_seq.
const (
	DetailOperation = "operation" // write, read, move, remove or mkdir
	DetailDirection = "direction" // of write, DirectionIn; of read, DirectionOut
	DetailTo        = "to"        // of move
	DetailAs        = "as"        // the user inside, if the client named one
)

// Keys of Record.Detail, of the ends of KindFile alone. Record.Size is how many bytes went in or out.
const (
	// DetailContentSHA256 is of the bytes that went in or out, in hexadecimal, where all did.
	DetailContentSHA256 = "content_sha256"
	// DetailAbsolute is the path in full, as the sandbox's agent says, where that is another.
	DetailAbsolute = "absolute_path"
)

// The directions of DetailDirection.
const (
	DirectionIn  = "in"
	DirectionOut = "out"
)

// FileDetail lists the keys that a begin of KindFile and its end have in common.
func FileDetail() []string {
	return []string{DetailOperation, DetailDirection, DetailTo, DetailAs}
}

// FileText is what a record of KindFile is about, in a few words: "write notes.txt", "move a to
// b". The paths are a client's, and not printable yet.
func (r Record) FileText() string {
	text := r.Detail[DetailOperation] + " " + r.File
	if to := r.Detail[DetailTo]; to != "" {
		text += " to " + to
	}
	return text
}
