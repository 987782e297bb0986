package audit

import (
	"encoding/json"
	"path/filepath"
)

// compareOwner compares whose run a record is of with what it committed to. Others of the
// segment share it; the entry belongs to the first of them.
func (v *verifier) compareOwner(seq uint64, of string, text []byte, personal *personalReader) error {
	if of == "" {
		return nil
	}
	if known := v.shared[of]; known != nil {
		v.countOwner(known)
		return nil
	}
	known := &sharedFact{tombstone: -1}
	e, ok, err := personal.findEntry(of)
	file := filepath.Base(personal.path)
	switch {
	case err != nil:
		return err
	case !ok:
		v.problem(&seq, file, 0, "the personal data of record %d, whose run it is of, are missing, and were not erased; the record itself is sound", seq)
	case e.Data == nil && !e.Erased.IsZero() && e.Seq == seq:
		known.tombstone = len(v.tombstones)
		v.tombstones = append(v.tombstones, tombstone{e, file, 0})
	case e.Seq != seq || !e.Shared || !e.isOfRun(text) || !e.proves():
		v.problem(&seq, file, 0, "the personal data of record %d, whose run it is of, were changed: they are not what it committed to; the record itself is sound", seq)
	}
	v.shared[of] = known
	v.countOwner(known)
	return nil
}

// isOfRun reports whether the entry names the run that the record's line does: it is what an
// erasure goes by, and the commitment is not to it.
func (e *personalEntry) isOfRun(text []byte) bool {
	var line struct {
		Run string `json:"agent_run_id"`
	}
	return json.Unmarshal(text, &line) == nil && line.Run == e.Run
}

func (v *verifier) countOwner(known *sharedFact) {
	if known.tombstone >= 0 {
		v.tombstones[known.tombstone].records++
		return
	}
	v.verdict.Personal++
}
