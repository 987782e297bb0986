package pip

// noteFolders notes the directories of a source, which may have one for each platform.
func (p pyprojectReader) noteFolders(source any) {
	switch s := source.(type) {
	case []any:
		for _, one := range s {
			p.noteFolders(one)
		}
	case map[string]any:
		if place, is := s["path"].(string); is {
			p.w.NoteFolder(p.m.File, place)
		}
	}
}
