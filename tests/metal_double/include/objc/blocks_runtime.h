/* GNUstep's headers ask for this where the compiler has blocks. Metal's declarations have block
 * types; nothing here makes a block, so no runtime for them is needed. */
