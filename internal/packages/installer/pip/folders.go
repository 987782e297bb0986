package pip

import "path"

// readFolders reads the directories of a source, which may have one for each platform: uv asks for what these require. Those outside of
// the project are noted.
func (p pyprojectReader) readFolders(source any) error {
	switch s := source.(type) {
	case []any:
		for _, one := range s {
			if err := p.readFolders(one); err != nil {
				return err
			}
		}
	case map[string]any:
		place, is := s["path"].(string)
		if !is {
			return nil
		}
		p.w.NoteFolder(p.m.File, place)
		dir := path.Join(path.Dir(p.m.File), place)
		if path.IsAbs(place) || isOutside(dir) || !isProject(p.w, dir) {
			return nil
		}
		_, err := readProject(p.w, dir)
		return err
	}
	return nil
}
