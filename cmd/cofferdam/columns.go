package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// A column of a table that does not fit is made narrower down to leastCell characters;
// the last one is wrapped where leastLast are left for it.
const (
	leastCell = 12
	leastLast = 24
	gap       = 2 // between columns
)

// columns aligns the cells of rows, which must be printable, without spaces at the ends of lines. Where lines
// would be longer than width (0: nobody minds), the last cells go on below themselves,
// and others are cut where that does not do.
func columns(rows [][]string, width int) []string {
	widths := columnWidths(rows)
	left := 0 // of the last column
	for _, w := range widths {
		left += w + gap
	}
	last := 0
	for _, row := range rows {
		if len(row) > len(widths) {
			last = max(last, cells(row[len(widths)]))
		}
	}
	if width <= 0 || left+last <= width {
		width = 0
	} else {
		narrow(widths, left+min(last, leastLast)-width)
	}
	var lines []string
	for _, row := range rows {
		lines = append(lines, rowLines(row, widths, width)...)
	}
	return lines
}

// columnWidths are those of all columns but the last.
func columnWidths(rows [][]string) []int {
	var widths []int
	for _, row := range rows {
		for i := range len(row) - 1 {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(row[i]))
		}
	}
	return widths
}

// narrow takes at least so much from the widths, from the widest first, as far as that
// goes.
func narrow(widths []int, much int) {
	for ; much > 0; much-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= leastCell {
			return
		}
		widths[widest]--
	}
}

// rowLines is a row in lines: one, unless its last cell has to be wrapped.
func rowLines(row []string, widths []int, width int) []string {
	var line strings.Builder
	at := 0
	for i, cell := range row[:max(0, len(row)-1)] {
		if width > 0 {
			cell = cut(cell, widths[i])
		}
		line.WriteString(cell + strings.Repeat(" ", widths[i]-cells(cell)+gap))
		at += widths[i] + gap
	}
	last := ""
	if len(row) > 0 {
		last = row[len(row)-1]
	}
	var lines []string
	for _, part := range wrap(last, width-at) {
		lines = append(lines, strings.TrimRight(line.String()+part, " "))
		line.Reset()
		line.WriteString(strings.Repeat(" ", at))
	}
	return lines
}

// cut keeps a cell to a width.
func cut(cell string, width int) string {
	if cells(cell) <= width {
		return cell
	}
	return string([]rune(cell)[:width-3]) + "..."
}

// wrap breaks text into lines of at most width characters, between words where that
// goes; with less than half of leastLast to break it in, it stays whole.
func wrap(text string, width int) []string {
	if cells(text) <= width || width < leastLast/2 { // negative: there is no width
		return []string{text}
	}
	var lines []string
	line := []rune{}
	for word := range strings.FieldsSeq(text) {
		letters := []rune(word)
		if len(line) > 0 && len(line)+1+len(letters) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, letters...)
		for len(line) > width {
			lines, line = append(lines, string(line[:width])), line[width:]
		}
	}
	return append(lines, string(line))
}

// cells is how many characters wide a printable text is.
func cells(s string) int { return utf8.RuneCountInString(s) }

// widthOf is how wide lines on w may be; 0 if w is no terminal, and whoever reads it has
// use for all of it.
func widthOf(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(descriptor(file)) {
		return 0
	}
	if cols, _, err := term.GetSize(descriptor(file)); err == nil && cols > 0 {
		return cols
	}
	return usualCols
}

// coloured tells whether w takes colours: a terminal that has them, of somebody who did
// not set NO_COLOR.
func coloured(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && widthOf(w) > 0
}

// paint gives the word that a line of a run's table begins with its colour: what came in
// is green, what did not is yellow or red.
func paint(line string) string {
	word := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(word)]
	for _, of := range []struct{ word, colour string }{
		{"ALARM", "\x1b[1;31m"}, {"installed", "\x1b[32m"}, {"refused", "\x1b[31m"}, {"withheld", "\x1b[33m"}, {"no such name", "\x1b[33m"},
	} {
		if indent != "" && strings.HasPrefix(word, of.word) {
			return indent + of.colour + of.word + "\x1b[0m" + word[len(of.word):]
		}
	}
	return line
}
