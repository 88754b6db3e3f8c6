/* Begins the code of a template of attention, after its macros are defined. */
#include "template_begin.h"

/* Whether scores become weights without any change but a factor. */
#define GT_PLAIN (!GT_MASKED && (GT_SOFTCAP) == 0.0f && (GT_SCALE) > 0.0f)
