// Package figure draws the figures of the book as SVG: boxes, arrows, time charts, sequence charts and tables.
//
// A figure has two sets of colours, for light and dark pages, and its own background, so that its text can be read on
// either. The text stays text: it can be selected and searched.
package figure
