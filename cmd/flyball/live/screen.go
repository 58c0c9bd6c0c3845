package live

import (
	"fmt"
	"strings"
	"time"

	bubbles "charm.land/bubbles/v2/table"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/flyball-dev/flyball/internal/pipeview"
	"github.com/flyball-dev/flyball/internal/printable"
)

// screen is the live table of a manager. It has the resources above and the controllers below; one row is chosen, and
// its details can be opened.
type screen struct {
	host     string
	interval time.Duration
	read     func() (pipeview.Pipeline, error)

	sample sample
	err    error // of the last attempt to read
	paused bool
	width  int
	height int

	upper, lower bubbles.Model // the resources and the controllers
	atLower      bool          // whether the chosen row is a controller
	opened       string        // the resource or controller whose details are shown; empty means none
	details      bubbles.Model
}

// reply is the message that the manager has answered, or has not.
type reply struct {
	pipeline pipeview.Pipeline
	err      error
}

// due is the message that it is time for the next sample.
type due struct{}

var (
	faint  = lipgloss.NewStyle().Faint(true)
	bold   = lipgloss.NewStyle().Bold(true)
	unwell = lipgloss.NewStyle().Foreground(lipgloss.Color("9"))
)

func newScreen(host string, interval time.Duration, read func() (pipeview.Pipeline, error)) *screen {
	s := &screen{host: host, interval: interval, read: read, width: 80, height: 24}
	styles := bubbles.Styles{
		Header: bold.Padding(0, 1), Cell: lipgloss.NewStyle().Padding(0, 1),
		Selected: lipgloss.NewStyle().Reverse(true),
	}
	for _, t := range []*bubbles.Model{&s.upper, &s.lower, &s.details} {
		*t = bubbles.New(bubbles.WithStyles(styles))
	}
	return s
}

func (s *screen) Init() tea.Cmd { return s.wait() }

// wait sends due after the interval.
func (s *screen) wait() tea.Cmd {
	return tea.Tick(s.interval, func(time.Time) tea.Msg { return due{} })
}

func (s *screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case due:
		if s.paused {
			return s, s.wait()
		}
		return s, func() tea.Msg {
			p, err := s.read()
			return reply{p, err}
		}
	case reply:
		s.take(m)
		return s, s.wait()
	case tea.KeyPressMsg:
		if s.press(m) {
			return s, tea.Quit
		}
	}
	s.layout()
	return s, nil
}

// take notes an answer. If it is none, the numbers stay.
func (s *screen) take(a reply) {
	if s.err = a.err; a.err == nil {
		s.sample = sample{before: s.sample.now, now: a.pipeline}
	}
	s.layout()
}

// press does what a key is for, and reports whether it ends the program.
func (s *screen) press(k tea.KeyPressMsg) (quit bool) {
	switch k.String() {
	case "q", "ctrl+c":
		return true
	case "space", "p":
		s.paused = !s.paused
	case "tab", "shift+tab":
		s.atLower = !s.atLower
	case "enter":
		if row := s.chosen().SelectedRow(); s.opened == "" && row != nil {
			s.opened = strings.TrimSuffix(row[0], " !")
		}
	case "esc", "backspace":
		s.opened = ""
	default:
		t := s.chosen()
		if s.opened != "" {
			t = &s.details
		}
		t.Focus()
		*t, _ = t.Update(k)
	}
	return false
}

// chosen is the table that has the chosen row.
func (s *screen) chosen() *bubbles.Model {
	if s.atLower {
		return &s.lower
	}
	return &s.upper
}

// layout fills the tables and gives them their places.
func (s *screen) layout() {
	fill(&s.upper, s.sample.resources(), s.width)
	fill(&s.lower, s.sample.controllers(), s.width)
	room := s.height - len(s.head()) - 3 // two headings of tables are theirs; the foot, and two empty lines
	if s.opened != "" {
		t := s.sample.handlers(s.opened)
		if s.atLower {
			t = s.sample.keys(s.opened)
		}
		fill(&s.details, t, s.width)
		s.details.SetHeight(max(2, room+1))
		s.details.Focus()
		return
	}
	// The controllers get what they need, up to half of the room; the resources get the rest.
	below := min(len(s.lower.Rows())+1, max(room/2, room-len(s.upper.Rows())-1))
	s.lower.SetHeight(max(2, below))
	s.upper.SetHeight(max(2, min(len(s.upper.Rows())+1, room-below)))
	s.upper.Blur()
	s.lower.Blur()
	s.chosen().Focus()
}

// fill puts rows into a table. The columns are as wide as their widest cell. What the screen lacks is taken from those
// that are wider than a third of it, such as the names of resources with selectors, and then from the last ones.
func fill(t *bubbles.Model, content table, width int) {
	cursor := t.Cursor()
	t.SetWidth(width)
	columns := make([]bubbles.Column, len(content.columns))
	const padding = 2
	lacking := -width
	for i, title := range content.columns {
		columns[i] = bubbles.Column{Title: title, Width: lipgloss.Width(title)}
		for _, row := range content.rows {
			columns[i].Width = max(columns[i].Width, lipgloss.Width(row[i]))
		}
		lacking += columns[i].Width + padding
	}
	third := width / 3
	for i := range columns {
		taken := max(0, min(lacking, columns[i].Width-third))
		lacking -= taken
		columns[i].Width = max(0, min(columns[i].Width-taken, width-padding))
		width -= columns[i].Width + padding
	}
	rows := make([]bubbles.Row, len(content.rows))
	for i, row := range content.rows {
		rows[i] = row
	}
	t.SetRows(nil) // SetColumns draws the rows, which may have another number of cells.
	t.SetColumns(columns)
	t.SetRows(rows)
	t.SetCursor(max(0, min(cursor, len(rows)-1)))
}

// head returns the lines above the tables.
func (s *screen) head() []string {
	state := "every " + s.interval.String()
	if s.paused {
		state = "paused"
	}
	lines := []string{bold.Render("flyball top") + "  " + s.host + "  " +
		s.sample.now.Time.Format("15:04:05") + "  " + faint.Render(state)}
	if s.err != nil {
		lines = append(lines, unwell.Render("no answer, these are the last numbers: "+printable.Line(s.err.Error())))
	}
	complaints := s.sample.complaints()
	const most = 4
	for i, c := range complaints {
		if i == most-1 && len(complaints) > most {
			lines = append(lines, unwell.Render(fmt.Sprintf("! and %d more", len(complaints)-i)))
			break
		}
		lines = append(lines, unwell.Render("! "+c))
	}
	if s.opened != "" {
		lines = append(lines, bold.Render(s.opened))
	}
	return lines
}

func (s *screen) View() tea.View {
	parts := s.head()
	foot := "↑↓ choose   tab resources/controllers   enter details   space pause   q quit"
	switch {
	case s.opened != "":
		parts = append(parts, "", s.details.View())
		foot = "↑↓ scroll   esc back   space pause   q quit"
	default:
		parts = append(parts, "", s.upper.View(), "", s.lower.View())
	}
	parts = append(parts, faint.Render(foot))
	lines := strings.Split(strings.Join(parts, "\n"), "\n")
	for i, line := range lines {
		lines[i] = lipgloss.NewStyle().MaxWidth(s.width).Render(line)
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
