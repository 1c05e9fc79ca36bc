/* The tag of the exception that `longjmp` throws: the compiler refers to it and leaves its definition to the
   program. The rest of setjmp is the C library's. */

__asm__(".globl __c_longjmp\n.tagtype __c_longjmp i32\n__c_longjmp:\n");
