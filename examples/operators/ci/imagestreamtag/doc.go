// Package imagestreamtag turns ImageStreams into their tags: one change of a stream becomes a key for every tag that changed, and
// the image that a tag points at is looked up with what is known of it.
package imagestreamtag
