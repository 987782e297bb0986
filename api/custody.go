package api

import "time"

// SealAudit is the body of POST /v1/audit/seal: the log's closed segments of which
// all records are older are compressed. Exactly one field is set.
type SealAudit struct {
	BeforeTime   time.Time `json:"before_time,omitzero"`
	BeforeRecord uint64    `json:"before_record,omitempty"`
}

// SealedAudit is its answer.
type SealedAudit struct {
	Segments []SealedSegment `json:"segments"`
}

// SealedSegment is a part of the log that was sealed. Its file may be moved away.
type SealedSegment struct {
	File        string `json:"file"`
	First       uint64 `json:"first"` // its first record's number
	Records     uint64 `json:"records"`
	BytesBefore int64  `json:"bytes_before"`
	BytesAfter  int64  `json:"bytes_after"`
}

// EraseAudit is the body of POST /v1/audit/erase: the personal data of a run's
// records, or of one record, are erased. Exactly one of Run and Record is set.
type EraseAudit struct {
	Run    string  `json:"run,omitempty"`
	Record *uint64 `json:"record,omitempty"`
	Reason string  `json:"reason,omitempty"`
}

// ErasedAudit is its answer: the records whose personal data are gone.
type ErasedAudit struct {
	Records []uint64 `json:"records"`
}

// RotateAuditKey is the body of POST /v1/audit/key: the log gets a new private key.
type RotateAuditKey struct {
	Reason string `json:"reason,omitempty"`
}

// RotatedAuditKey is its answer.
type RotatedAuditKey struct {
	PublicKey string `json:"public_key"` // of the new key
}
